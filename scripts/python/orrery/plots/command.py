"""What the scripts scripts/plot_*.py share: their options, their messages, and opening and writing files."""
import argparse
import os
import sys

from ..results import Results as open_results
from ..errors import ResultsError
from ..units import picoseconds
from . import style


def numbers(text):
    """Returns the NPUs of a list such as "0,4-7": [0, 4, 5, 6, 7]."""
    found = []
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if not first.strip().isdigit() or (last and not last.strip().isdigit()):
            raise argparse.ArgumentTypeError(f"found '{piece}'; expected NPUs such as 0,4-7")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def span(text):
    """Returns (begin, end) in picoseconds of a text such as "10 ms,20 ms"."""
    begin, comma, end = text.partition(",")
    try:
        found = picoseconds(begin), picoseconds(end)
    except ValueError:
        found = None
    if not comma or not found or found[0] >= found[1]:
        raise argparse.ArgumentTypeError(
            f"found '{text}'; expected two times, the earlier one first, such as '10 ms,20 ms'"
        )
    return found


def parser(description, ending):
    """Returns a parser with the options of all plot scripts. ending: of the picture's name, if --output does not give it."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("results", metavar="RESULTS.h5", help="what orrery run --output wrote")
    made.add_argument(
        "--output", metavar="FILE", help=f"the picture: .png, .svg or .pdf (default: beside the results, {ending})"
    )
    made.add_argument("--dpi", type=int, default=style.DPI, help=f"dots per inch (default: {style.DPI})")
    made.set_defaults(ending=ending)
    return made


def draw(arguments, make):
    """Opens the results, draws them with `make(run)`, writes the picture and says where; ends the program with a message if it cannot."""
    program = os.path.basename(sys.argv[0])
    output = arguments.output or os.path.splitext(arguments.results)[0] + arguments.ending
    try:
        with open_results(arguments.results) as run:
            style.save(make(run), output, arguments.dpi)
    except (ResultsError, ImportError) as error:
        sys.exit(f"{program}: {error}")
    except (OSError, ValueError) as error:
        sys.exit(f"{program}: {output}: the picture cannot be written: {error}")
    print(f"wrote {output}")
