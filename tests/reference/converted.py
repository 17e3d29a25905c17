"""What `orrery convert` makes of an input, read back by a reader that is not the program's."""
import pathlib
import tempfile

import chakra
import harness


class Refused(Exception):
    """The program refused the input; the text is its message."""


def nodes_of(inputs, *options):
    """Converts inputs and returns {NPU: nodes}, whose attributes are plain numbers and texts. Raises Refused if the program refuses them."""
    with tempfile.TemporaryDirectory(prefix="orrery-inputs-") as folder:
        prefix = pathlib.Path(folder) / "made"
        done = harness.orrery("convert", *map(str, inputs), f"--output={prefix}", *options)
        if done.code == 3:
            raise Refused(done.err.strip())
        if done.code != 0:
            raise AssertionError(f"exit code {done.code}: {done.err.strip()}")
        made = {int(path.name.split(".")[1]): chakra.read(path) for path in pathlib.Path(folder).glob("made.*.et")}
    for nodes in made.values():
        for node in nodes:
            node.attributes = {name: getattr(value, "value", value) for name, value in node.attributes.items()}
    return made
