"""What the fuzz targets start from and what they read: for each target, files of the repository, files of shared/inputs beside it, and
the sources of its parsers, whose words are its dictionary and whose lines fuzz.sh --coverage counts. A source may be followed by two
texts: only the lines from the first one to the second one count."""

TRACE, CONFIG = "src/trace", "src/config"

TARGETS = {
    "astra_sim": ([], [], [f"{CONFIG}/astra_sim/[!f]*.cpp", f"{CONFIG}/json_source.cpp"]),
    "chakra": (
        ["tests/reference/cases/*/workload.0.et"],
        ["chakra-et/**/*.0.et"],
        [
            f"{TRACE}/chakra_{part}.cpp"
            for part in ("attribute", "file", "layout", "legacy", "reader", "v0_0_1_reader", "v0_0_3_reader")
        ]
        + [
            f"{TRACE}/{part}.cpp"
            for part in ("group_definitions", "node_attributes", "wire", "message_source", "tensor_lists")
        ],
    ),
    "checkpoint": (
        [],
        [],
        [
            ("src/checkpoint/file.cpp", "class BlockReader", "Packs pieces"),
            ("src/checkpoint/file.cpp", "Calls visit(piece)", "Runs a step on rank 0"),
            ("src/checkpoint/file.cpp", "Found find(", ""),
        ],
    ),
    "command_line": (
        [],
        [],
        [
            f"{CONFIG}/{part}.cpp"
            for part in (
                "command_line",
                "astra_sim/flags",
                "option_table",
                "option_values",
                "subcommands",
                "study_command",
                "study_subcommands",
                "show_graph_command",
                "show_plan_command",
                "synthesis_options",
                "npu_list",
            )
        ],
    ),
    "configuration": (
        ["configs/*.yaml", "configs/libra/*.yaml", "configs/scale/*.yaml"],
        [],
        [f"{CONFIG}/keys/*.cpp"]
        + [
            f"{CONFIG}/{part}.cpp"
            for part in (
                "read",
                "reading",
                "references",
                "section",
                "types",
                "units",
                "validation",
                "value",
                "words",
                "yaml_source",
            )
        ],
    ),
    "expression": (
        [],
        [],
        [f"src/explore/{part}.cpp" for part in ("evaluate", "parse", "value", "physical_dimension")],
    ),
    "flows": (["configs/flows/*.yaml"], [], [f"{CONFIG}/flow_file.cpp"]),
    "graph": (
        ["configs/graphs/*.yaml"],
        ["infragraph/*.yaml", "ns3-htsim/**/*topo*"],
        [
            f"{CONFIG}/graph_reader.cpp",
            f"{CONFIG}/generated_graph.cpp",
            "src/graphfile/ns3_topology.cpp",
            "src/topology/generators/*.cpp",
        ],
    ),
    "groups": ([], ["**/comm_group*.json"], [f"{TRACE}/group_file.cpp"]),
    "gzip": (
        [],
        ["chakra-et/**/*.0.et", "kineto/**/*.gz"],
        [f"{TRACE}/{part}.cpp" for part in ("trace_file", "describe_file", "content", "registry")],
    ),
    "infragraph": (
        ["configs/infragraph/*.yaml"],
        ["infragraph/*.yaml"],
        [
            f"src/graphfile/{part}.cpp"
            for part in (
                "infragraph",
                "infragraph_document",
                "infragraph_older",
                "infragraph_connections",
                "infragraph_reader",
                "infragraph_values",
            )
        ]
        + ["src/topology/network_graph.cpp", "src/topology/graph_dimensions.cpp"],
    ),
    "kineto": (
        [],
        ["kineto/**/*.json"],
        [
            f"{TRACE}/kineto_{part}.cpp"
            for part in ("arguments", "communication", "launches", "reader", "recording", "schedule")
        ],
    ),
    "measured_tables": (
        [],
        [],
        [
            ("src/compute/kernel_table.cpp", "split(std::string_view line)", "KernelTable::kernels_of("),
            ("src/collective/libraries.cpp", "words_of(std::string_view line)", "Library::registry()"),
            ("src/collective/libraries.cpp", "parse_nccl_tests(std::string_view text", "library_time(const"),
            (f"{CONFIG}/keys/perturbation.cpp", "parse_factors(const", "compute_speeds("),
        ],
    ),
    "msccl": (
        ["configs/collectives/*.xml", "tests/fuzz/seeds/msccl/*"],
        ["msccl/*/*.xml"],
        ["src/collective/msccl.cpp", "src/collective/msccl_check.cpp"],
    ),
    "mscclpp": (["tests/fuzz/seeds/mscclpp/*"], ["mscclpp/*.json"], ["src/collective/mscclpp*.cpp"]),
    "nccl_topology": (
        ["tests/fuzz/seeds/nccl_topology/*"],
        ["nccl-topo/*/*.xml"],
        ["src/graphfile/nccl_file.cpp", "src/graphfile/nccl_topology.cpp", "src/graphfile/nccl_server.cpp"],
    ),
    "prices": (["configs/prices/*.yaml", "configs/libra/prices.yaml"], [], [f"{CONFIG}/keys/cost.cpp"]),
    "rank_map": (["partitions/*.part.*"], [], ["src/partition/rank_map.cpp"]),
    "recording": ([], [], [f"{TRACE}/kineto_companion.cpp"]),
    "results": ([], [], ["src/results/read.cpp", "src/results/source.cpp", "src/results/seal.cpp"]),
    "study": (["configs/studies/*.yaml"], [], [f"{CONFIG}/study.cpp"]),
    "text_traces": (
        ["tests/fuzz/seeds/text_traces/*"],
        ["chakra-json/*.json*", "goal/*.goal", "text/**/*.txt"],
        [
            f"{TRACE}/{part}.cpp"
            for part in (
                "chakra_json_reader",
                "goal_reader",
                "pytorch_node",
                "pytorch_reader",
                "text_workload",
                "text_workload_reader",
                "line_reader",
                "line_source",
                "json_elements",
            )
        ],
    ),
    "trace_model": ([], [], ["src/synthesis/model_file.cpp"]),
}
