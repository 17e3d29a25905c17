#include "orrery/network/packet_rules.hpp"

namespace orrery::network {
namespace {

constexpr std::uint64_t gbps = 1'000'000'000;
constexpr std::uint64_t mbps = 1'000'000;

/// config.txt of ASTRA-sim's ns-3 (astra-network-ns3, scratch/config), which has no congestion control.
PacketRules astra_sim_ns3() {
  PacketRules rules;
  rules.marks = {{100 * gbps, {400'000, 1'600'000, 0.2}}, {400 * gbps, {800'000, 3'200'000, 0.2}}};
  return rules;
}

/// SimAI.conf of SimAI, with the headers of ns-3-alibabacloud.
PacketRules simai_ns3() {
  PacketRules rules = astra_sim_ns3();
  rules.payload = 9000;
  rules.header = 48;
  rules.acknowledgement = 60;
  rules.pause_frame = 43;
  rules.control = ControlName("dcqcn");
  rules.window.kind = PacketWindow::Kind::largest;
  rules.marks[200 * gbps] = {300'000, 1'200'000, 0.8};
  return rules;
}

/// run.py of the authors of HPCC for 100 Gb/s, with telemetry in each data packet and acknowledgement.
PacketRules hpcc_2019() {
  PacketRules rules;
  rules.header = 90;
  rules.acknowledgement = 88;
  rules.pause_frame = 43;
  rules.control = ControlName("hpcc");
  rules.parameters.additive_increase = 40 * mbps;
  rules.parameters.least_rate = 1000 * mbps;
  rules.parameters.telemetry_unit = 4;
  rules.window.kind = PacketWindow::Kind::largest;
  return rules;
}

/// main_uec.cpp of uet-htsim: an MTU of 4150 bytes, NSCC, trimming, and packets of a flow on all paths.
PacketRules uec() {
  PacketRules rules;
  rules.transport = TransportName("uec");
  rules.payload = 4086;
  rules.header = 64;
  rules.acknowledgement = 64;
  rules.pause_frame = 64;
  rules.pauses = false;
  rules.control = ControlName("nscc");
  rules.window.kind = PacketWindow::Kind::none;
  return rules;
}

/// Linux on Ethernet: CUBIC, and switches that drop what does not fit.
PacketRules tcp_linux() {
  PacketRules rules;
  rules.transport = TransportName("tcp");
  rules.control = ControlName("cubic");
  return rules;
}

/// DCTCP (RFC 8257): marks above 66 kB, and short time-outs.
PacketRules tcp_datacenter() {
  PacketRules rules = tcp_linux();
  rules.control = ControlName("dctcp");
  rules.discipline = DisciplineName("red");
  rules.marks = {{SwitchRules::any_rate, {66'000, 66'000, 1}}};
  rules.tcp.min_rto = Time::from_ns(5'000'000);
  return rules;
}

constexpr PacketPreset astra_sim_ns3_preset{"astra-sim-ns3", "ASTRA-sim's ns-3: windows, no congestion control",
                                            astra_sim_ns3};
constexpr PacketPreset simai_ns3_preset{"simai-ns3", "SimAI's ns-3: payloads of 9000 B, DCQCN", simai_ns3};
constexpr PacketPreset hpcc_2019_preset{"hpcc-2019", "the simulations of HPCC's paper, at 100 Gb/s", hpcc_2019};
constexpr PacketPreset uec_preset{"uec", "Ultra Ethernet as in uet-htsim: NSCC, trimming, spraying", uec};

constexpr PacketPreset tcp_linux_preset{"tcp-linux", "TCP with CUBIC, over queues that drop packets", tcp_linux};
constexpr PacketPreset tcp_datacenter_preset{"tcp-datacenter", "TCP with DCTCP, over queues that mark packets",
                                             tcp_datacenter};

}  // namespace

PacketRules::PacketRules() = default;

PacketRules PacketRules::with_sizes() const {
  PacketRules rules = *this;
  if (!transport->has_connections) return rules;
  rules.payload = tcp.mss;
  rules.header = rules.acknowledgement = rules.pause_frame = tcp.header;
  return rules;
}

std::span<const PacketPreset* const> PacketPreset::registry() {
  static constexpr const PacketPreset* presets[] = {&astra_sim_ns3_preset, &simai_ns3_preset, &hpcc_2019_preset,
                                                    &uec_preset,           &tcp_linux_preset, &tcp_datacenter_preset};
  return presets;
}

}  // namespace orrery::network
