// The three look-ups of the firewall service, from the IANA registries Protocol Numbers, ICMP Type Numbers and ICMPv6
// "type" Numbers as of January 2026. Only assigned numbers are listed; a client sees others too, and keeps them as
// numbers.

/** A row of a look-up, as served. */
export interface LookupRow {
  readonly id: string;
  readonly number: number;
  readonly name: string;
}

/** Keywords of IP protocols 0 to 147, in order. */
const PROTOCOLS_FROM_0 =
  'HOPOPT ICMP IGMP GGP IPv4 ST TCP CBT EGP IGP BBN-RCC-MON NVP-II PUP ARGUS EMCON XNET CHAOS UDP ' +
  'MUX DCN-MEAS HMP PRM XNS-IDP TRUNK-1 TRUNK-2 LEAF-1 LEAF-2 RDP IRTP ISO-TP4 NETBLT MFE-NSP ' +
  'MERIT-INP DCCP 3PC IDPR XTP DDP IDPR-CMTP TP++ IL IPv6 SDRP IPv6-Route IPv6-Frag IDRP RSVP GRE ' +
  'DSR BNA ESP AH I-NLSP SWIPE NARP Min-IPv4 TLSP SKIP IPv6-ICMP IPv6-NoNxt IPv6-Opts - CFTP - ' +
  'SAT-EXPAK KRYPTOLAN RVD IPPC - SAT-MON VISA IPCV CPNX CPHB WSN PVP BR-SAT-MON SUN-ND WB-MON ' +
  'WB-EXPAK ISO-IP VMTP SECURE-VMTP VINES IPTM NSFNET-IGP DGP TCF EIGRP OSPFIGP Sprite-RPC LARP ' +
  'MTP AX.25 IPIP MICP SCC-SP ETHERIP ENCAP - GMTP IFMP PNNI PIM ARIS SCPS QNX A/N IPComp SNP ' +
  'Compaq-Peer IPX-in-IP VRRP PGM - L2TP DDX IATP STP SRP UTI SMP SM PTP ISIS-over-IPv4 FIRE CRTP ' +
  'CRUDP SSCOPMCE IPLT SPS PIPE SCTP FC RSVP-E2E-IGNORE Mobility-Header UDPLite MPLS-in-IP manet ' +
  'HIP Shim6 WESP ROHC Ethernet AGGFRAG NSH Homa BIT-EMU';

/** IP protocols by keyword; numbers without one (61, 63, 68, 99, 114) are missing. */
export const IP_PROTOCOLS: readonly LookupRow[] = [
  ...PROTOCOLS_FROM_0.split(' ').flatMap((name, number) => (name === '-' ? [] : [[number, name]])),
  [255, 'Reserved'],
].map(([number, name]) => row(Number(number), String(name)));

/** ICMP types. */
export const ICMP_TYPES = rows({
  0: 'Echo Reply',
  3: 'Destination Unreachable',
  4: 'Source Quench (Deprecated)',
  5: 'Redirect',
  6: 'Alternate Host Address (Deprecated)',
  8: 'Echo',
  9: 'Router Advertisement',
  10: 'Router Solicitation',
  11: 'Time Exceeded',
  12: 'Parameter Problem',
  13: 'Timestamp',
  14: 'Timestamp Reply',
  15: 'Information Request (Deprecated)',
  16: 'Information Reply (Deprecated)',
  17: 'Address Mask Request (Deprecated)',
  18: 'Address Mask Reply (Deprecated)',
  30: 'Traceroute (Deprecated)',
  31: 'Datagram Conversion Error (Deprecated)',
  32: 'Mobile Host Redirect (Deprecated)',
  33: 'IPv6 Where-Are-You (Deprecated)',
  34: 'IPv6 I-Am-Here (Deprecated)',
  35: 'Mobile Registration Request (Deprecated)',
  36: 'Mobile Registration Reply (Deprecated)',
  37: 'Domain Name Request (Deprecated)',
  38: 'Domain Name Reply (Deprecated)',
  39: 'SKIP (Deprecated)',
  40: 'Photuris',
  42: 'Extended Echo Request',
  43: 'Extended Echo Reply',
  253: 'RFC3692-style Experiment 1',
  254: 'RFC3692-style Experiment 2',
});

/** ICMPv6 types. */
export const ICMPV6_TYPES = rows({
  1: 'Destination Unreachable',
  2: 'Packet Too Big',
  3: 'Time Exceeded',
  4: 'Parameter Problem',
  100: 'Private experimentation',
  101: 'Private experimentation',
  128: 'Echo Request',
  129: 'Echo Reply',
  130: 'Multicast Listener Query',
  131: 'Multicast Listener Report',
  132: 'Multicast Listener Done',
  133: 'Router Solicitation',
  134: 'Router Advertisement',
  135: 'Neighbor Solicitation',
  136: 'Neighbor Advertisement',
  137: 'Redirect Message',
  138: 'Router Renumbering',
  139: 'ICMP Node Information Query',
  140: 'ICMP Node Information Response',
  141: 'Inverse Neighbor Discovery Solicitation Message',
  142: 'Inverse Neighbor Discovery Advertisement Message',
  143: 'Version 2 Multicast Listener Report',
  144: 'Home Agent Address Discovery Request Message',
  145: 'Home Agent Address Discovery Reply Message',
  146: 'Mobile Prefix Solicitation',
  147: 'Mobile Prefix Advertisement',
  148: 'Certification Path Solicitation Message',
  149: 'Certification Path Advertisement Message',
  151: 'Multicast Router Advertisement',
  152: 'Multicast Router Solicitation',
  153: 'Multicast Router Termination',
  154: 'FMIPv6 Messages',
  155: 'RPL Control Message',
  156: 'ILNPv6 Locator Update Message',
  157: 'Duplicate Address Request',
  158: 'Duplicate Address Confirmation',
  159: 'MPL Control Message',
  160: 'Extended Echo Request',
  161: 'Extended Echo Reply',
  200: 'Private experimentation',
  201: 'Private experimentation',
});

function rows(names: Readonly<Record<number, string>>): readonly LookupRow[] {
  return Object.entries(names).map(([number, name]) => row(Number(number), name));
}

function row(number: number, name: string): LookupRow {
  return { id: String(number), number, name };
}
