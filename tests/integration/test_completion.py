#!/usr/bin/python3
"""The completions of shells offer commands, options and words of the program, and the manual pages are well-formed.

Shells that are not installed are left out, but for bash. fish and groff are asked only where they are there.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

# What is typed, and words that must and must not be offered.
CASES = {
    "orrery ": ({"run", "check", "show"}, {"trace"}),
    "orrery sh": ({"show"}, {"run"}),
    "orrery show ": ({"trace", "completion"}, {"run"}),
    "orrery run --pro": ({"--progress", "--progress-interval"}, {"--output"}),
    "orrery run --progress ": ({"auto", "plain", "none"}, {"block"}),
    "orrery run --comp": ({"--compute-scale"}, set()),
    "orrery check --com": ({"--comm-group-configuration"}, {"--compute-scale"}),
    "orrery show keys run.o": ({"run.output"}, {"run.quiet"}),
    "orrery show man show-t": ({"show-trace", "show-timeline"}, {"run"}),
    "orrery show completion ": ({"bash", "zsh", "fish"}, set()),
    "orrery partition --strategy ": ({"metis", "block"}, set()),
}
BASH = """source "$1"
COMP_WORDS=($2)
if [[ $2 == *' ' ]]; then COMP_WORDS+=(''); fi
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_orrery
printf '%s\\n' "${COMPREPLY[@]}"
"""


def printed(command, *arguments, text=None):
    """Runs another program to success and returns what it prints, standard error included."""
    done = subprocess.run(
        [command, *arguments],
        stdin=None if text is not None else subprocess.DEVNULL,
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=harness.PATIENCE,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


class Completion(harness.Folder):
    def script(self, shell):
        path = self.folder / f"orrery.{shell}"
        outcome = harness.orrery("show", "completion", shell)
        self.assertEqual(outcome.code, 0, outcome.err)
        path.write_text(outcome.out)
        return path

    def check_offers(self, offers):
        """Checks what `offers` returns for each case."""
        for line, (there, not_there) in CASES.items():
            with self.subTest(line=line):
                found = set(offers(line))
                self.assertLessEqual(there, found)
                self.assertFalse(not_there & found, found)

    def test_bash(self):
        """bash offers the words of each case, and after --progress= those of the option."""
        script = self.script("bash")
        self.check_offers(lambda line: printed("bash", "-c", BASH, "bash", str(script), line).split())
        after_equals = BASH.replace("COMP_WORDS=($2)", "COMP_WORDS=(orrery run --progress = p)")
        self.assertEqual(printed("bash", "-c", after_equals, "bash", str(script), "").split(), ["plain"])

    def test_every_command_is_offered(self):
        """The commands that the message about an unknown one lists are those that bash offers, without and with `show`."""
        script = self.script("bash")
        for line in ("orrery ", "orrery show "):
            known = re.search("Known here: (.*?)\\.", harness.orrery(*line.split()[1:], "what-is-this").err)[1].split(
                ", "
            )
            offered = printed("bash", "-c", BASH, "bash", str(script), line).split()
            self.assertEqual(sorted(known), sorted(offered))

    @unittest.skipUnless(shutil.which("fish"), "there is no fish")
    def test_fish(self):
        """fish offers the words of each case."""
        script = self.script("fish")
        self.check_offers(
            lambda line: [
                offer.split("\t")[0]
                for offer in printed("fish", "-c", f"source {script}; complete -C '{line}'").splitlines()
            ]
        )

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    def test_zsh(self):
        """zsh reads the script without a fault, and it names all options of all commands."""
        script = self.script("zsh")
        self.assertEqual(printed("zsh", "-n", str(script)), "")
        help_text = harness.orrery("run", "--help").out
        for option in re.findall(r"^ +--([a-z-]+)", help_text, re.M):
            self.assertRegex(script.read_text(), rf"'\*?--{option}[=\[]")

    def test_unknown_names_are_refused(self):
        """An unknown shell or manual page, and none where one is needed, end with exit code 2 and a hint."""
        for arguments, said in (
            (["completion"], "Give bash, zsh or fish"),
            (["completion", "fisch"], "Did you mean 'fish'?"),
            (["man", "show-trce"], "Did you mean 'show-trace'?"),
        ):
            outcome = harness.orrery("show", *arguments)
            self.assertEqual(outcome.code, 2)
            self.assertIn(said, outcome.err)

    def test_pages_name_every_option(self):
        """The page of `run` has each option of its help, an example and the exit codes; groff, where it is there, finds no fault."""
        page = harness.orrery("show", "man", "run").out
        for option in re.findall(r"^ +--([a-z-]+)", harness.orrery("run", "--help").out, re.M):
            self.assertIn("\\fB\\-\\-" + option.replace("-", "\\-") + "\\fR", page)
        for part in (".SH NAME\norrery\\-run \\- simulate a", ".SH EXAMPLE", ".SH EXIT STATUS", ".BR orrery (1)"):
            self.assertIn(part, page)
        if shutil.which("groff"):
            for name in ("", "run", "show-keys"):
                page = harness.orrery("show", "man", *name.split()).out
                self.assertEqual(printed("groff", "-man", "-ww", "-Tutf8", "-z", text=page), "")


if __name__ == "__main__":
    harness.main()
