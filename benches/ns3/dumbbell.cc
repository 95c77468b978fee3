// What ns-3 spends on the scenario of crates/sim/benches/sim.rs: greedy TCP flows through one bottleneck.
//
// N flows, 10 Mbit/s (N x 0.5 Mbit/s above 20 flows), drop-tail of 1 BDP, 20 ms round trip; TCP as ours: SACK,
// timestamps, segments of 1448 B, initial window 10, an acknowledgement for every second segment or after 40 ms,
// RTO of at least 200 ms, buffers of 4 MiB, starts spread over the first second. Nothing is recorded.
//
// Bytes count as ours do, as Ethernet frames (14 B + IP). ns-3's point-to-point link adds 2 B instead, so the
// bottleneck's rate and limit are scaled by 1502/1514: exact for full segments, which is all that comes down but
// for the handshake. Ours counts the frame being sent as queued and ns-3 does not: its limit is one frame less.
//
// ns-3 looks up routes and sockets in lists, so what a packet costs grows with routes per router and with sockets
// per host. sqrt(N)/2 hosts a side were the cheapest of those tried; --hosts tries another number, and
// --hosts=0 puts the flows' two hosts directly at the ends of the bottleneck, as our simulator has it: one link.
//
// Prints one line of JSON. CPU time is user + system of this process from the first line of main to the end.

#include <cmath>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <string>

#include <sys/resource.h>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

constexpr double kEthernetFrame = 1514;
constexpr double kPppFrame = 1502;
constexpr uint32_t kHeaders = 2 + 20 + 20 + 60; // the largest frame without payload
constexpr uint16_t kPort = 5201;
const Time kOneWay = MilliSeconds(10);
const Time kStarts = Seconds(1);

uint64_t g_dataPackets = 0;
uint64_t g_drops = 0;

void Sent(Ptr<const Packet> frame) { g_dataPackets += frame->GetSize() > kHeaders; }

void Dropped(Ptr<const Packet>) { ++g_drops; }

double CpuSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](const timeval& t) { return t.tv_sec + t.tv_usec * 1e-6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double PeakMegabytes()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss * 1024 / 1e6;
}

void SetTcp(const std::string& variant)
{
    constexpr uint32_t buffer = 4 << 20;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + variant)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
}

/// The two ends of a new link, with addresses.
struct Link
{
    NetDeviceContainer devices;
    Ipv4InterfaceContainer interfaces;
};

Link Connect(Ptr<Node> from, Ptr<Node> to, PointToPointHelper& link, Ipv4AddressHelper& addresses)
{
    Link made;
    made.devices = link.Install(from, to);
    made.interfaces = addresses.Assign(made.devices);
    addresses.NewNetwork();
    return made;
}

void Route(Ptr<Node> node, const char* network, const char* mask, Ipv4Address gateway, uint32_t interface)
{
    Ipv4StaticRoutingHelper helper;
    Ptr<Ipv4> ipv4 = node->GetObject<Ipv4>();
    helper.GetStaticRouting(ipv4)->AddNetworkRouteTo(Ipv4Address(network), Ipv4Mask(mask), gateway, interface);
}

} // namespace

int main(int argc, char* argv[])
{
    const double begun = CpuSeconds();
    uint32_t flows = 2;
    double seconds = 30;
    int32_t hosts = -1;
    std::string variant = "TcpLinuxReno";
    CommandLine command(__FILE__);
    command.AddValue("flows", "number of flows, 1 to 10000", flows);
    command.AddValue("seconds", "simulated time in s, more than the 1 s over which flows start", seconds);
    command.AddValue("hosts", "hosts a side; -1 sqrt(flows)/2, 0 the ends of the bottleneck", hosts);
    command.AddValue("tcp", "ns-3's name of the TCP variant", variant);
    command.Parse(argc, argv);
    if (flows < 1 || flows > 10000 || !(seconds > kStarts.GetSeconds()) || hosts < -1 || hosts > int32_t(flows))
    {
        std::cerr << "dumbbell: give --flows=1 to 10000, --seconds over 1, --hosts=-1 to the number of flows\n";
        return 2;
    }
    TypeId known;
    if (!TypeId::LookupByNameFailSafe("ns3::" + variant, &known))
    {
        std::cerr << "dumbbell: ns-3 has no " << variant << "; give --tcp=TcpLinuxReno or TcpNewReno\n";
        return 2;
    }
    SetTcp(variant);
    if (hosts < 0)
    {
        hosts = std::ceil(std::sqrt(flows) / 2);
    }

    const double rate = flows > 20 ? flows * 500e3 : 10e6;
    const double limit = rate / 8 * 2 * kOneWay.GetSeconds();
    const double scale = kPppFrame / kEthernetFrame;
    const auto queue = std::to_string(uint64_t((limit - kEthernetFrame) * scale)) + "B";

    // Without flow control there is no queueing discipline above the device: its own queue is the only one.
    PointToPointHelper bottleneck;
    bottleneck.DisableFlowControl();
    bottleneck.SetChannelAttribute("Delay", TimeValue(kOneWay));
    PointToPointHelper access;
    access.DisableFlowControl();
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(100e9))));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000p"));

    NodeContainer routers;
    routers.Create(2);
    NodeContainer servers;
    NodeContainer players;
    InternetStackHelper internet;
    Ipv4StaticRoutingHelper routing;
    internet.SetRoutingHelper(routing);
    internet.SetIpv6StackInstall(false);
    internet.Install(routers);

    Ipv4AddressHelper middle("10.0.0.0", "255.255.255.252");
    Link core = Connect(routers.Get(0), routers.Get(1), bottleneck, middle);
    auto down = DynamicCast<PointToPointNetDevice>(core.devices.Get(0));
    auto up = DynamicCast<PointToPointNetDevice>(core.devices.Get(1));
    auto queued = CreateObject<DropTailQueue<Packet>>();
    queued->SetAttribute("MaxSize", QueueSizeValue(QueueSize(queue)));
    down->SetQueue(queued);
    down->SetAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate * scale))));
    // Up there is only the delay.
    up->SetAttribute("DataRate", DataRateValue(DataRate(uint64_t(100e9))));
    up->GetQueue()->SetAttribute("MaxSize", QueueSizeValue(QueueSize("1000000p")));
    down->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Sent));
    queued->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));

    std::vector<Ipv4Address> sinks;
    if (hosts == 0)
    {
        servers.Add(routers.Get(0));
        players.Add(routers.Get(1));
        sinks.push_back(core.interfaces.GetAddress(1));
    }
    else
    {
        servers.Create(hosts);
        players.Create(hosts);
        internet.Install(servers);
        internet.Install(players);
        Ipv4AddressHelper left("10.1.0.0", "255.255.255.252");
        Ipv4AddressHelper right("10.2.0.0", "255.255.255.252");
        for (int32_t i = 0; i < hosts; ++i)
        {
            // Interface 0 is loopback, 1 a host's only link or a router's side of the bottleneck.
            Link at = Connect(servers.Get(i), routers.Get(0), access, left);
            Route(servers.Get(i), "10.0.0.0", "255.0.0.0", at.interfaces.GetAddress(1), 1);
            at = Connect(routers.Get(1), players.Get(i), access, right);
            Route(players.Get(i), "10.0.0.0", "255.0.0.0", at.interfaces.GetAddress(0), 1);
            sinks.push_back(at.interfaces.GetAddress(1));
        }
        Route(routers.Get(0), "10.2.0.0", "255.255.0.0", core.interfaces.GetAddress(1), 1);
        Route(routers.Get(1), "10.1.0.0", "255.255.0.0", core.interfaces.GetAddress(0), 1);
    }

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kPort));
    ApplicationContainer sinking = sink.Install(players);
    ApplicationContainer sources;
    for (uint32_t i = 0; i < flows; ++i)
    {
        const uint32_t host = i % servers.GetN();
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(sinks[host], kPort));
        source.SetAttribute("SendSize", UintegerValue(1 << 16));
        ApplicationContainer one = source.Install(servers.Get(host));
        one.Start(kStarts * i / flows);
        sources.Add(one);
    }

    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    const uint64_t events = Simulator::GetEventCount();
    uint64_t received = 0;
    for (uint32_t i = 0; i < sinking.GetN(); ++i)
    {
        received += DynamicCast<PacketSink>(sinking.Get(i))->GetTotalRx();
    }
    Simulator::Destroy();
    const double cpu = CpuSeconds() - begun;
    std::cout << std::setprecision(9) << "{\"flows\": " << flows << ", \"hosts\": " << hosts << ", \"tcp\": \""
              << variant << "\", \"simulated_s\": " << seconds << ", \"rate_bps\": " << uint64_t(rate)
              << ", \"packets\": " << g_dataPackets << ", \"drops\": " << g_drops << ", \"goodput_bps\": "
              << received * 8 / seconds << ", \"events\": " << events << ", \"cpu_s\": " << cpu
              << ", \"us_per_packet\": " << (g_dataPackets ? cpu * 1e6 / g_dataPackets : 0)
              << ", \"peak_memory_mb\": " << PeakMegabytes() << "}" << std::endl;
    return 0;
}
