// The figures of libraries and of fabrics. Shares are those of the rate that data sheets give.
#include <array>

#include "orrery/collective/library.hpp"

namespace orrery::collective {
namespace {

// Rings within a node: nccl-tests on these machines (365 of 450 GB/s on H100, 235 of 300 on A100, 680 of 900 on B200),
// checked on H800 with 200 GB/s (NVIDIA/nccl, issue 1374). All-reduces in the switch (NVLS): 272 of 450 GB/s on H200.
// NVLSTree: AWS p5 (260 GB/s) and two racks of GB300 (372 GB/s). All-to-all: GB300 (685 of 900), H100 (NVIDIA/nccl,
// issue 2169), A100 (195 of 300). Trees and channels: NVIDIA/nccl at 5067397c, src/graph/tuning.cc and topo.h. Ramps
// are fitted to public series of nccl-tests alone.
//
// The absolute figures are bandwidths of the same machines: A100 node; H200 node; AWS p4de, p5 and p6-B200
// (aws-samples/awsome-distributed-training at 7217859) for EFA; GB200 of OCI.
constexpr Ramp assumed_infiniband{15e-6, 100e-6, 16e6};

constinit const Library nccl_h100{
    .name = "nccl-h100",
    .help = "NCCL on nodes of NVIDIA H100 or H200",
    .processor = "h100",
    .link = 450e9,
    .hop_latency = 468e-9,
    .shares = {.ring = 0.811, .nvls = 0.604, .nvls_tree = 0.577, .tree = 0.46, .all_to_all = 0.752},
    .channels = {24, 24 * 36.7e9},
    .nvls_channels = {16, 16 * 57.7e9},
    .small = {0, 25e-6, 12.6e3},
    .large = {0, 60e-6, 24e6},
    .absolute = {.ring = 365e9,
                 .in_switch = 272e9,
                 .within_node = {38e-6, 60e-6, 12e6},
                 .infiniband = assumed_infiniband,
                 .efa = {45e-6, 400e-6, 32e6}}};
constinit const Library nccl_a100{.name = "nccl-a100",
                                  .help = "NCCL on nodes of NVIDIA A100",
                                  .generation = NcclGeneration::ampere,
                                  .processor = "a100",
                                  .link = 300e9,
                                  .hop_latency = 500e-9,
                                  .shares = {.ring = 0.783, .tree = 0.46, .all_to_all = 0.65},
                                  .channels = {24, 24 * 20e9},
                                  .small = {0, 21e-6, 270e3},
                                  .large = {0, 220e-6, 20e6},
                                  .absolute = {.ring = 235e9,
                                               .within_node = {45e-6, 180e-6, 8e6},
                                               .infiniband = assumed_infiniband,
                                               .efa = {120e-6, 800e-6, 8e6}}};
constinit const Library nccl_b200{
    .name = "nccl-b200",
    .help = "NCCL on nodes of NVIDIA B200 or GB200",
    .generation = NcclGeneration::blackwell,
    .processor = "b200",
    .link = 900e9,
    .hop_latency = 400e-9,
    .shares = {.ring = 0.756, .nvls = 0.532, .nvls_tree = 0.415, .tree = 0.46, .all_to_all = 0.752},
    .channels = {32, 32 * 40e9},
    .nvls_channels = {16, 16 * 96e9},
    .small = {0, 8e-6, 3.6e3},
    .large = {0, 128e-6, 30e6},
    .absolute = {.ring = 680e9,
                 .in_switch = 476e9,
                 .within_node = {34e-6, 120e-6, 32e6},
                 .infiniband = assumed_infiniband,
                 .efa = {165e-6, 300e-6, 64e6}}};

// rccl-tests on one node and on two nodes with RoCE at 400 Gbit/s of MI300X (hisohara/ai-scripts at 0780bb3c,
// training/01_rccl-smoketest); all-to-all on MI355X (361 of 538 GB/s). The most that the GPU moves is not known: no
// described link reaches the figure. All times are those of rings. With absolute figures EFA has those of RoCE.
constexpr Ramp rccl_roce{206e-6, 175e-6, 1e6};
constinit const Library rccl_mi300x{.name = "rccl-mi300x",
                                    .help = "RCCL on nodes of AMD MI300X",
                                    .family = LibraryFamily::rccl,
                                    .link = 448e9,
                                    .hop_latency = 500e-9,
                                    .shares = {.ring = 0.705, .tree = 0.3, .all_to_all = 0.673},
                                    .channels = {0, 1e12},
                                    .mesh = 8,
                                    .small = {0, 2.7e-6, 150e3},
                                    .large = {0, 51e-6, 9.8e6},
                                    .absolute = {.ring = 316e9,
                                                 .ring_over_nodes = 359e9,
                                                 .within_node = {14e-6, 45e-6, 6e6},
                                                 .infiniband = rccl_roce,
                                                 .efa = rccl_roce}};

// Public runs over nodes of A100, H100, H800 and MI300X and MI325X; the shares of trees and of all-to-all are
// assumptions where no run is named. Trees reach half of the NICs where the switch of the nodes does not reduce.
constexpr double plain_tree = 0.5;
constinit const Fabric infiniband{.name = "infiniband",
                                  .help = "InfiniBand",
                                  .ramp = {0, 100e-6, 8e6},
                                  .shares = {0.955, 0.87, 0.85, plain_tree},
                                  .nic = 50e9};
constinit const Fabric roce{.name = "roce",
                            .help = "Ethernet with RDMA",
                            .step = 5e-6,
                            .ramp = {0, 270e-6, 13.5e6},
                            .shares = {0.885, 0.87, 0.80, plain_tree},
                            .nic = 50e9};
constinit const Fabric roce_rccl_2_22{.name = "roce-rccl-2.22",
                                      .help = "Ethernet with RDMA as RCCL 2.22 used it",
                                      .step = 96e-6,
                                      .ramp = {0, 203e-6, 3.5e6},
                                      .shares = {0.90, 0.87, 0.80, plain_tree},
                                      .nic = 50e9};
constinit const Fabric efa{.name = "efa",
                           .help = "Amazon's Elastic Fabric Adapter (p5)",
                           .step = 24e-6,
                           .ramp = {0, 320e-6, 21e6},
                           .shares = {0.955, 0.87, 0.85, plain_tree},
                           .nic = 50e9,
                           .is_efa = true};
constinit const Fabric efa_2020{.name = "efa-2020",
                                .help = "Elastic Fabric Adapter, first version (p4d, p4de)",
                                .step = 70e-6,
                                .ramp = {0, 615e-6, 5.2e6},
                                .shares = {0.955, 0.835, 0.85, 0.835},
                                .nic = 6.25e9,
                                .is_efa = true};
constinit const Fabric efa_b200{.name = "efa-b200",
                                .help = "Elastic Fabric Adapter of p6",
                                .step = 79e-6,
                                .ramp = {0, 180e-6, 47e6},
                                .shares = {0.955, 0.87, 0.85, plain_tree},
                                .nic = 50e9,
                                .is_efa = true};
constinit const Fabric tcpxo{.name = "tcpxo",
                             .help = "Google's GPUDirect-TCPXO (a3-mega)",
                             .step = 49e-6,
                             .ramp = {0, 915e-6, 15e6},
                             .shares = {0.93, 0.92, 0.80, plain_tree},
                             .nic = 25e9};
constinit const Fabric slingshot{.name = "slingshot",
                                 .help = "HPE Slingshot 11",
                                 .step = 2e-6,
                                 .ramp = {0, 177e-6, 1.1e6},
                                 .shares = {0.93, 0.87, 0.80, plain_tree},
                                 .nic = 12.5e9};
constinit const Fabric no_fabric{.name = "none",
                                 .help = "no software: links between nodes alone",
                                 .ramp = {0, 0, 1e6},
                                 .shares = {0.95, 0.87, 0.85, plain_tree},
                                 .nic = 50e9};

}  // namespace

std::span<const Library* const> Library::registry() {
  static constexpr const Library* libraries[] = {&nccl_h100, &nccl_a100, &nccl_b200, &rccl_mi300x};
  return libraries;
}

std::span<const Fabric* const> Fabric::registry() {
  static constexpr const Fabric* fabrics[] = {&infiniband, &roce,  &roce_rccl_2_22, &efa,      &efa_2020,
                                              &efa_b200,   &tcpxo, &slingshot,      &no_fabric};
  return fabrics;
}

Fabric fabric_of(const LibraryOptions& options) {
  const FabricFigures& given = options.fabric_figures;
  Fabric fabric = *options.fabric;
  if (given.step) fabric.step = given.step->seconds();
  if (given.ramp) fabric.ramp.filling = given.ramp->seconds();
  if (given.ramp_bytes) fabric.ramp.bytes = static_cast<double>(given.ramp_bytes->count());
  if (given.nic) fabric.nic = given.nic->bytes_per_ns() * 1e9;
  return fabric;
}

}  // namespace orrery::collective
