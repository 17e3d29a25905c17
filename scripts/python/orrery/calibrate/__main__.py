"""What `orrery calibrate` starts. The environment variable ORRERY_PROGRAM names the program.

Exit codes are those of Orrery (docs/user-guide.md): 3 if an input cannot be used, else that of the program if it fails.
"""
import argparse
import os
import sys

from orrery.calibrate import collectives, provenance, step, steps
from orrery.calibrate.program import Failed, Unusable


def parsed():
    """Returns the arguments. The program has checked their form before."""
    parser = argparse.ArgumentParser(prog="orrery calibrate")
    parser.add_argument("what", choices=("step", "steps", "collectives", "provenance"))
    parser.add_argument("files", nargs="+")
    parser.add_argument("--measured")
    parser.add_argument("--key", default="system.compute.efficiency")
    parser.add_argument("--stack")
    parser.add_argument("--output", default="calibrated-stack.yaml")
    parser.add_argument("--library")
    parser.add_argument("--kind", default="all-reduce")
    parser.add_argument("--fabric", default="infiniband")
    parser.add_argument("--nic", default="400 Gb/s")
    return parser.parse_args()


def main():
    arguments = parsed()
    program = os.environ.get("ORRERY_PROGRAM", "orrery")
    try:
        if arguments.what == "step":
            step.calibrate(program, arguments.files, arguments.measured, arguments.key)
        elif arguments.what == "steps":
            steps.calibrate(program, arguments.files, arguments.stack, arguments.output, os.cpu_count() or 1)
        elif arguments.what == "provenance":
            provenance.show(program, arguments.files)
        else:
            collectives.calibrate(
                program, arguments.files, arguments.library, arguments.kind, arguments.fabric, arguments.nic
            )
    except Unusable as error:
        print(f"orrery: error: {error}", file=sys.stderr)
        return 3
    except Failed as error:
        sys.stderr.write(error.message)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
