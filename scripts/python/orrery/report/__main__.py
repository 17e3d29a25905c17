"""What `orrery report`, `orrery compare` and `orrery show results` start, with `report`, `compare` or `show` and its options.

Exit codes are those of Orrery (docs/user-guide.md): 3 if a file cannot be read, 5 if the page cannot be written, 69 if a Python package
is not installed.
"""
import argparse
import os
import re
import sys

BAD_INPUT, OUTPUT, NOT_INSTALLED = 3, 5, 69


def printable(text):
    """Returns a text, which may quote files, without the characters that control a terminal."""
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", "?", text)


def fail(code, message):
    """Ends the program with a message in the form of Orrery's."""
    print(f"orrery: error: {printable(message)}", file=sys.stderr)
    sys.exit(code)


def parsed():
    """Returns the arguments. The program has checked them before; so these messages are only seen by who starts the package by hand."""
    parser = argparse.ArgumentParser(prog="python3 -m orrery.report", description="Shows results of Orrery.")
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser("report", help="write one page for a browser")
    report.add_argument("--output", default="report.html")
    report.add_argument("--force", action="store_true", help="replace an existing file")
    for name, told in (
        ("compare", "print in what runs or studies differ"),
        ("show", "print what a run or a study says"),
    ):
        commands.add_parser(name, help=told).add_argument("--format", choices=("text", "json", "csv"), default="text")
    for command in commands.choices.values():
        command.add_argument("files", nargs="+", metavar="RESULTS.h5|EXPLORE.h5")
    return parser.parse_args()


def check_output(path, force):
    """Ends the program if the page may not be written there, before anything is read."""
    if os.path.lexists(path) and not os.path.isfile(path):
        fail(OUTPUT, f"{path}: found something that is no regular file; expected the name of a page to write.")
    if os.path.lexists(path) and not force:
        fail(OUTPUT, f"{path}: the file exists. Give --force to replace it, or another name with --output.")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        fail(OUTPUT, f"{path}: found no folder {folder}. Create it, or name another file with --output.")


def are_all(files, belongs, kind):
    """Says whether all files belong to a kind. Raises ResultsError if some do and others do not."""
    from orrery.errors import ResultsError

    found = [path for path in files if belongs(path)]
    if found and len(found) < len(files):
        other = next(path for path in files if path not in found)
        raise ResultsError(
            f"{other}: found no {kind} beside {found[0]}, which is one; expected files of one kind. Give the two kinds apart."
        )
    return bool(found)


def report(page, arguments):
    """Writes the page and says where."""
    check_output(arguments.output, arguments.force)
    try:
        size = page.write(arguments.files, arguments.output)
    except OSError as error:
        fail(OUTPUT, f"{arguments.output}: the page cannot be written: {error.strerror}")
    print(f"wrote {arguments.output} ({size / 1e6:.1f} MB). Open it in a browser.")


def main():
    arguments = parsed()
    try:  # here, so that a missing package becomes a message
        from orrery.errors import ResultsError
        from orrery.report import page, text
        from orrery.report.serving import page as serving_page, text as serving_text
        from orrery.report.serving.facts import is_serving
        from orrery.report.studies import page as study_page, text as study_text
        from orrery.source import CAMPAIGN, CLUSTER, STUDY, format_of
    except ImportError as error:
        fail(NOT_INSTALLED, str(error))
    try:
        if arguments.command == "report" and are_all(
            arguments.files, lambda path: format_of(path) in (CAMPAIGN, CLUSTER), "campaign or cluster"
        ):
            from orrery.report import weeks as page
        elif are_all(arguments.files, lambda path: format_of(path) == STUDY, "study"):
            page, text = study_page, study_text
        elif are_all(arguments.files, is_serving, "serving run"):
            page, text = serving_page, serving_text
        if arguments.command == "report":
            report(page, arguments)
        else:
            sys.stdout.write(printable(text.of(arguments.files, arguments.format)))
            sys.stdout.flush()
    except ImportError as error:
        fail(NOT_INSTALLED, str(error))
    except ResultsError as error:
        fail(BAD_INPUT, str(error))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Each dataset can be read, but one says what cannot be together with another.
        fail(
            BAD_INPUT,
            f"{', '.join(arguments.files)}: found tables that do not fit each other ({type(error).__name__}: {error}); "
            "expected results as Orrery wrote them. Take another copy of the file, or run again.",
        )
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # who reads has seen enough
        sys.exit(OUTPUT)


if __name__ == "__main__":
    main()
