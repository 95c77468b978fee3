//! TLV-TYPE numbers (NDN Packet Format Specification version 0.3, "TLV-TYPE Number Assignments"; NDNLPv2, "TLV-TYPE
//! Number Assignments"; NDN Technical Report NDN-0022, "NDN Naming Conventions", revision 3) and the bounds that hold for
//! every packet.

/// A packet: Interest.
pub const INTEREST: u32 = 5;
/// A packet: Data.
pub const DATA: u32 = 6;

/// Name.
pub const NAME: u32 = 7;
/// A component: GenericNameComponent.
pub const GENERIC: u16 = 8;
/// A component: ImplicitSha256DigestComponent.
pub const IMPLICIT_SHA256_DIGEST: u16 = 1;
/// A component: ParametersSha256DigestComponent.
pub const PARAMETERS_SHA256_DIGEST: u16 = 2;
/// A component: KeywordNameComponent.
pub const KEYWORD: u16 = 32;
/// A component: SegmentNameComponent, the number of a segment.
pub const SEGMENT: u16 = 50;
/// A component: ByteOffsetNameComponent.
pub const BYTE_OFFSET: u16 = 52;
/// A component: VersionNameComponent.
pub const VERSION: u16 = 54;
/// A component: TimestampNameComponent, in microseconds since 1970.
pub const TIMESTAMP: u16 = 56;
/// A component: SequenceNumNameComponent.
pub const SEQUENCE_NUM: u16 = 58;

/// In an Interest: CanBePrefix.
pub const CAN_BE_PREFIX: u32 = 33;
/// In an Interest: MustBeFresh.
pub const MUST_BE_FRESH: u32 = 18;
/// In an Interest: ForwardingHint.
pub const FORWARDING_HINT: u32 = 30;
/// In an Interest: Nonce.
pub const NONCE: u32 = 10;
/// In an Interest: InterestLifetime.
pub const INTEREST_LIFETIME: u32 = 12;
/// In an Interest: HopLimit.
pub const HOP_LIMIT: u32 = 34;
/// In an Interest: ApplicationParameters.
pub const APPLICATION_PARAMETERS: u32 = 36;
/// In a signed Interest: InterestSignatureInfo.
pub const INTEREST_SIGNATURE_INFO: u32 = 44;
/// In a signed Interest: InterestSignatureValue.
pub const INTEREST_SIGNATURE_VALUE: u32 = 46;

/// In a Data: MetaInfo.
pub const META_INFO: u32 = 20;
/// In a Data: Content.
pub const CONTENT: u32 = 21;
/// In a Data: SignatureInfo.
pub const SIGNATURE_INFO: u32 = 22;
/// In a Data: SignatureValue.
pub const SIGNATURE_VALUE: u32 = 23;
/// In MetaInfo: ContentType.
pub const CONTENT_TYPE: u32 = 24;
/// A ContentType: NACK, with which an application reports that it has no such Data.
pub const CONTENT_NACK: u64 = 3;
/// In MetaInfo: FreshnessPeriod.
pub const FRESHNESS_PERIOD: u32 = 25;
/// In MetaInfo: FinalBlockId.
pub const FINAL_BLOCK_ID: u32 = 26;
/// In SignatureInfo: SignatureType.
pub const SIGNATURE_TYPE: u32 = 27;

/// A packet of the link: LpPacket.
pub const LP_PACKET: u32 = 100;
/// In an LpPacket: Fragment.
pub const FRAGMENT: u32 = 80;
/// In an LpPacket: Sequence.
pub const SEQUENCE: u32 = 81;
/// In an LpPacket: FragIndex.
pub const FRAG_INDEX: u32 = 82;
/// In an LpPacket: FragCount.
pub const FRAG_COUNT: u32 = 83;
/// In an LpPacket: PitToken.
pub const PIT_TOKEN: u32 = 98;
/// In an LpPacket: Nack.
pub const NACK: u32 = 800;
/// In a Nack: NackReason.
pub const NACK_REASON: u32 = 801;
/// In an LpPacket: CongestionMark.
pub const CONGESTION_MARK: u32 = 832;

/// Bytes of a packet, its own type and length included. The specification leaves it to the link; 8800 B is
/// the limit in the forwarders and libraries of the NDN project (`MAX_NDN_PACKET_SIZE`), for an LpPacket with
/// its content too.
pub const MOST_PACKET_BYTES: usize = 8800;
/// Components of a name. Ours: the specification has no limit but the packet's.
pub const MOST_COMPONENTS: usize = 256;
/// Bytes of a name's components: the limit leaves a packet some room.
pub const MOST_NAME_BYTES: usize = 8192;
/// Fragments of a packet.
pub const MOST_FRAGMENTS: u64 = 256;
