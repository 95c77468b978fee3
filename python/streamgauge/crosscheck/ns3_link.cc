// A trial in ns-3: TCP and constant-rate UDP flows from one host through a router's bottleneck to another. Compiled
// in memory by cppyy (ns3.py), against the headers and libraries of PyPI's ns3 package.
//
//     sender --- access, no delay, random loss --- router --- bottleneck, drop-tail, delay --- receiver
//
// Every packet is followed at the sender's tap, at both places where it may be dropped and at the receiver. No link
// reorders, so a queue of packet numbers a link tells them apart.
//
// Bytes count as Ethernet frames (14 B + IP). ns-3's link adds 2 B instead, so rate and limit are scaled by
// 1502/1514, which is exact for full segments, and UDP's payload so that its frames take their time to within a
// byte. The limit counts the packet being sent, as ours does and ns-3's does not: it is a frame less here.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

namespace streamgauge {

constexpr int64_t kNever = INT64_MAX;
constexpr double kScale = 1502.0 / 1514.0;
constexpr uint16_t kFirstPort = 5201;
constexpr int kOther = -1; // a packet that is not followed

struct Data
{
    int64_t sent, arrived, dropped, payload, seq, repeat;
};

struct Ack
{
    int64_t sent, back;
};

struct Sample
{
    int64_t time, cwnd;
};

struct Flow
{
    std::vector<Data> data;
    std::vector<Ack> acks;
    std::vector<Sample> samples;
    int64_t next = 0; // one past the highest byte sent
    uint32_t cwnd = 0;
    ns3::ApplicationContainer source;

    void Window(uint32_t, uint32_t window) { cwnd = window; }
};

/// Where a followed packet is noted: its flow, and its place in that flow's list.
struct Place
{
    int flow;
    size_t index;
};

class Trial
{
  public:
    /// Rates in bit/s, sizes in bytes, times in ns; `loss` is a probability.
    Trial(uint64_t seed, double rate, double limit, int64_t down_ns, int64_t up_ns, double loss)
    {
        using namespace ns3;
        RngSeedManager::SetSeed(1);
        RngSeedManager::SetRun(seed);
        hosts.Create(3);
        InternetStackHelper internet;
        internet.SetIpv6StackInstall(false);
        internet.Install(hosts);

        PointToPointHelper link;
        link.DisableFlowControl(); // no queueing discipline above the device's own queue
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000p"));
        link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(100e9))));
        NetDeviceContainer access = link.Install(hosts.Get(0), hosts.Get(1));
        NetDeviceContainer core = link.Install(hosts.Get(1), hosts.Get(2));
        Ipv4AddressHelper left("10.1.0.0", "255.255.255.0");
        Ipv4AddressHelper right("10.2.0.0", "255.255.255.0");
        left.Assign(access);
        receiver = right.Assign(core).GetAddress(1);
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();

        auto shaped = DynamicCast<PointToPointNetDevice>(core.Get(0));
        shaped->SetAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate * kScale))));
        const auto bytes = uint64_t(std::max(0.0, (limit - 1514) * kScale));
        shaped->GetQueue()->SetAttribute("MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::BYTES, bytes)));
        // A channel has one delay for both ways: half of the round trip.
        core.Get(0)->GetChannel()->SetAttribute("Delay", TimeValue(NanoSeconds((down_ns + up_ns) / 2)));
        if (loss > 0)
        {
            auto model = CreateObject<RateErrorModel>();
            model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
            model->SetRate(loss);
            DynamicCast<PointToPointNetDevice>(access.Get(1))->SetReceiveErrorModel(model);
        }
        auto on = [this](Ptr<NetDevice> device, const char* what, void (Trial::*then)(Ptr<const Packet>)) {
            device->TraceConnectWithoutContext(what, MakeCallback(then, this));
        };
        on(access.Get(0), "MacTx", &Trial::Sent);
        on(access.Get(1), "PhyRxDrop", &Trial::Lost);
        on(core.Get(0), "MacTx", &Trial::Queued);
        on(core.Get(0), "MacTxDrop", &Trial::Refused);
        on(core.Get(1), "MacRx", &Trial::Arrived);
        on(core.Get(1), "MacTx", &Trial::Answered);
        on(access.Get(0), "MacRx", &Trial::Heard);
    }

    /// A greedy flow; `bytes` 0 has no end.
    void Bulk(const std::string& tcp, int64_t start_ns, uint64_t bytes)
    {
        using namespace ns3;
        const uint16_t port = kFirstPort + flows.size();
        flows.push_back(std::make_unique<Flow>());
        auto protocol = hosts.Get(0)->GetObject<TcpL4Protocol>();
        const TypeId variant = TypeId::LookupByName("ns3::" + tcp);
        const Time start = NanoSeconds(start_ns);
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sink.Install(hosts.Get(2));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(receiver, port));
        source.SetAttribute("MaxBytes", UintegerValue(bytes));
        source.SetAttribute("SendSize", UintegerValue(1 << 16));
        Flow* flow = flows.back().get();
        flow->source = source.Install(hosts.Get(0));
        flow->source.Start(start);
        // The socket is made when the application starts: just before that its type is chosen, just after it is there.
        Simulator::Schedule(start - NanoSeconds(1), [protocol, variant] {
            protocol->SetAttribute("SocketType", TypeIdValue(variant));
        });
        Simulator::Schedule(start + NanoSeconds(1), [flow] {
            auto socket = DynamicCast<BulkSendApplication>(flow->source.Get(0))->GetSocket();
            socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Flow::Window, flow));
        });
    }

    /// Constant bit rate; `payload` is what each packet has above UDP.
    void Cbr(double packets_per_s, uint32_t payload, int64_t start_ns)
    {
        using namespace ns3;
        constexpr uint16_t port = 5001;
        PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sink.Install(hosts.Get(2));
        UdpClientHelper source(InetSocketAddress(receiver, port));
        source.SetAttribute("MaxPackets", UintegerValue(UINT32_MAX));
        source.SetAttribute("Interval", TimeValue(Seconds(1 / packets_per_s)));
        source.SetAttribute("PacketSize", UintegerValue(uint32_t((payload + 42) * kScale - 30 + 0.5)));
        source.Install(hosts.Get(0)).Start(NanoSeconds(start_ns));
    }

    void Run(int64_t length_ns, int64_t sample_ns)
    {
        using namespace ns3;
        every = NanoSeconds(sample_ns);
        Simulator::Schedule(every, &Trial::Look, this);
        Simulator::Stop(NanoSeconds(length_ns));
        Simulator::Run();
        Simulator::Destroy();
    }

    /// Writes `STEM-FLOW.data`, `.acks` and `.cwnd`: rows of 64-bit integers in the machine's byte order.
    bool Write(const std::string& stem) const
    {
        bool good = true;
        for (size_t i = 0; i < flows.size(); ++i)
        {
            const std::string name = stem + "-" + std::to_string(i);
            good &= Put(name + ".data", flows[i]->data) && Put(name + ".acks", flows[i]->acks);
            good &= Put(name + ".cwnd", flows[i]->samples);
        }
        return good;
    }

  private:
    template <typename T>
    static bool Put(const std::string& name, const std::vector<T>& rows)
    {
        std::ofstream file(name, std::ios::binary);
        file.write(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(T));
        file.close();
        return file.good();
    }

    static int64_t Now() { return ns3::Simulator::Now().GetNanoSeconds(); }

    /// Reads the headers: which flow (or kOther), and where its payload begins and how long it is.
    int Read(ns3::Ptr<const ns3::Packet> frame, bool down, int64_t& seq, int64_t& payload) const
    {
        using namespace ns3;
        Ptr<Packet> packet = frame->Copy();
        PppHeader ppp;
        Ipv4Header ip;
        TcpHeader tcp;
        packet->RemoveHeader(ppp);
        packet->RemoveHeader(ip);
        if (ip.GetProtocol() != TcpL4Protocol::PROT_NUMBER)
        {
            return kOther;
        }
        packet->RemoveHeader(tcp);
        seq = tcp.GetSequenceNumber().GetValue();
        payload = packet->GetSize();
        return (down ? tcp.GetDestinationPort() : tcp.GetSourcePort()) - kFirstPort;
    }

    void Sent(ns3::Ptr<const ns3::Packet> frame)
    {
        int64_t seq = 0;
        int64_t payload = 0;
        const int which = Read(frame, true, seq, payload);
        if (which == kOther || payload == 0)
        {
            on_access.push_back({kOther, 0});
            return;
        }
        Flow& flow = *flows[which];
        on_access.push_back({which, flow.data.size()});
        flow.data.push_back({Now(), kNever, kNever, payload, seq, seq < flow.next});
        flow.next = std::max(flow.next, seq + payload);
    }

    static Place Take(std::deque<Place>& places)
    {
        const Place first = places.front();
        places.pop_front();
        return first;
    }

    void Drop(const Place& place)
    {
        if (place.flow != kOther)
        {
            flows[place.flow]->data[place.index].dropped = Now();
        }
    }

    void Lost(ns3::Ptr<const ns3::Packet>) { Drop(Take(on_access)); }

    /// The router forwards at once: what enters its queue is what has just come off the access link.
    void Queued(ns3::Ptr<const ns3::Packet>) { on_core.push_back(Take(on_access)); }

    void Refused(ns3::Ptr<const ns3::Packet>)
    {
        Drop(on_core.back());
        on_core.pop_back();
    }

    void Arrived(ns3::Ptr<const ns3::Packet>)
    {
        const Place place = Take(on_core);
        if (place.flow != kOther)
        {
            flows[place.flow]->data[place.index].arrived = Now();
        }
    }

    void Answered(ns3::Ptr<const ns3::Packet> frame)
    {
        int64_t seq = 0;
        int64_t payload = 0;
        const int which = Read(frame, false, seq, payload);
        if (which == kOther || payload > 0)
        {
            on_return.push_back({kOther, 0});
            return;
        }
        on_return.push_back({which, flows[which]->acks.size()});
        flows[which]->acks.push_back({Now(), kNever});
    }

    void Heard(ns3::Ptr<const ns3::Packet>)
    {
        const Place place = Take(on_return);
        if (place.flow != kOther)
        {
            flows[place.flow]->acks[place.index].back = Now();
        }
    }

    void Look()
    {
        for (auto& flow : flows)
        {
            if (flow->cwnd > 0)
            {
                flow->samples.push_back({Now(), flow->cwnd});
            }
        }
        ns3::Simulator::Schedule(every, &Trial::Look, this);
    }

    ns3::NodeContainer hosts;
    ns3::Ipv4Address receiver;
    ns3::Time every;
    std::vector<std::unique_ptr<Flow>> flows;
    std::deque<Place> on_access, on_core, on_return;
};

/// TCP as Linux has it, for every socket made from now on.
inline void Settings(uint32_t segment, uint32_t initial_window, uint32_t send_buffer, uint32_t receive_window,
                     int64_t delayed_ack_ns, bool hystart)
{
    using namespace ns3;
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(initial_window));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(send_buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(receive_window));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(delayed_ack_ns > 0 ? 2 : 1));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(NanoSeconds(delayed_ack_ns)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(hystart));
}

} // namespace streamgauge
