"""Reads the structure of C++ sources: functions with their lengths, classes with their members.

It relies on the layout that clang-format gives the sources of this repository, and knows neither the preprocessor nor templates. It is
meant for checks of size.
"""
import collections
import re

Function = collections.namedtuple("Function", "name line length")
Class = collections.namedtuple("Class", "name line public_functions data_members functions friends")

LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
TAIL_OF_FUNCTION = re.compile(r"(?:const|noexcept|override|final|mutable|&|->[^;{}]*|requires[^;{}]*|\s)*")
CONTROL = {"if", "for", "while", "switch", "catch", "do", "else", "return", "try"}
HEAD_OF_CLASS = re.compile(r"(?:^|\s)(?:class|struct)\s+((?:\w+::)*\w+)(?:\s+final)?\s*(?::[^:].*)?$", re.DOTALL)
INITIALISERS = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)")  # of a constructor: from the end of its parameters on
NAME_OF_FUNCTION = re.compile(r"((?:~?\w+(?:<[^<>]*>)?::)*(?:operator\s*\S+?|~?\w+))\s*\(")


def blanked(text):
    """Returns the text without comments and the contents of literals. Every line keeps its number."""

    def blank(match):
        if match[0].startswith(("/", "R")):
            return "\n" * match[0].count("\n")
        return '""' if match[0][0] == '"' else "' '"

    return LITERAL.sub(blank, text)


def blocks(text):
    """Returns every brace block, outermost first, as (head, line of the head, position of '{', position after '}').

    The head is the text between the end of the statement or block before and the brace. A brace that follows its word without a
    space, as in `size_{n}`, holds initial values and is no block.
    """
    found, open_braces, start, values = [], [], 0, 0
    for at, character in enumerate(text):
        if character == "{":
            if values or (at > 0 and not text[at - 1].isspace()):
                values += 1
                continue
            head = text[start:at]
            line = text.count("\n", 0, start + len(head) - len(head.lstrip())) + 1
            open_braces.append((head.strip(), line, at))
            start = at + 1
        elif character == "}" and values:
            values -= 1
        elif character == "}":
            found.append((*open_braces.pop(), at + 1))
            start = at + 1
        elif character == ";" and not values:
            start = at + 1
    return sorted(found, key=lambda block: block[2])


def is_function(head):
    """Returns whether a brace block with this head is the body of a function."""
    head = re.sub(r"^(?:public|private|protected):\s*", "", head)
    initialisers = INITIALISERS.search(head)
    if initialisers:
        head = head[: initialisers.start() + 1]
    if not head or "(" not in head or ")" not in head or head.endswith(("=", ",", "(", "return")):
        return False
    first = re.match(r"[\w:~]+", head)
    if first and first[0] in CONTROL:
        return False
    tail = head[head.rindex(")") + 1 :]
    return TAIL_OF_FUNCTION.fullmatch(tail) is not None and "[" not in head.split("(")[0]


def functions(text):
    """Returns every function with a body; a lambda counts as part of the function around it."""
    plain = blanked(text)
    result = []
    for head, line, _, end in blocks(plain):
        if is_function(head):
            names = NAME_OF_FUNCTION.findall(head)
            result.append(Function(names[0] if names else head[:40], line, plain.count("\n", 0, end) + 2 - line))
    return result


def without_blocks(body):
    """Returns the text of a class with an empty pair of braces in place of each body of a function or nested class."""
    depth, kept = 0, []
    for character in body:
        if character == "{":
            depth += 1
            if depth == 1:
                kept.append("{")
        elif character == "}":
            depth -= 1
            if depth == 0:
                kept.append("}")
        elif depth == 0:
            kept.append(character)
    return "".join(kept)


def statements(body, is_struct):
    """Yields (access, declaration) of every declaration directly in a class."""
    access = "public" if is_struct else "private"
    text = without_blocks(body)
    for part in re.split(r";|\{\}(?!\s*[;,)])", text):
        while True:
            label = re.match(r"\s*(public|private|protected):", part)
            if not label:
                break
            access, part = label[1], part[label.end() :]
        part = re.sub(r"\{\}?", "", part).strip()
        if part:
            yield access, part


def classes(text):
    """Returns every class and struct with its numbers of public functions, data members, functions and friends. Operators, constructors and
    destructors do not count as public functions, but as functions. Operators do not count as friends, static and constexpr members not as
    data members."""
    plain = blanked(text)
    result = []
    for head, line, begin, end in blocks(plain):
        match = HEAD_OF_CLASS.search(re.sub(r"template\s*<[^{}]*?>\s*(?=class|struct)", "", head))
        if not match or "enum" in head or "(" in head:
            continue
        name = match[1].split("::")[-1]
        public = data = functions_of_class = friends = 0
        for access, part in statements(plain[begin + 1 : end - 1], re.search(r"\bstruct\s", head) is not None):
            is_operator = re.search(r"\boperator\b", part) is not None
            if re.match(r"friend\b", part):
                friends += not is_operator
                continue
            if re.match(
                r"(?:using|typedef|enum|class|struct|template\s*<[^;]*>\s*(?:class|struct)|static_assert)\b", part
            ):
                continue
            if is_operator:
                functions_of_class += 1
                continue
            called = NAME_OF_FUNCTION.search(re.sub(r"^template\s*<.*?>\s*(?=\w)", "", part, flags=re.DOTALL))
            is_call = (
                called is not None
                and not re.match(r"[^(]*=\s*[^(]", part.split("(")[0] + "(")
                and not re.search(r"std::function<[^;]*$", part.split(called[1] + "(")[0] if called else "")
            )
            if is_call:
                functions_of_class += 1
                public += access == "public" and called[1].lstrip("~") != name
            elif not re.match(r"(?:static|constexpr|inline)\b", part):
                data += 1 + without_angles(part).count(",")
        result.append(Class(name, line, public, data, functions_of_class, friends))
    return result


def without_angles(text):
    """Returns the text without template arguments, parentheses, indices and initial values."""
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)|\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    return re.sub(r"=[^,]*", "", text)
