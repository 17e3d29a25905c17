"""Reads the structure of C++ sources that clang-format has laid out: functions with their lengths, classes with their members.

It knows no preprocessor and no templates beyond their layout. It is meant for checks of size, not for compiling.
"""
import collections
import re

Function = collections.namedtuple("Function", "name line length")
Class = collections.namedtuple("Class", "name line public_functions data_members")

LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
CONTROL = {"if", "for", "while", "switch", "catch", "do", "else", "return", "try"}
HEAD_OF_CLASS = re.compile(r"(?:^|\s)(?:class|struct)\s+((?:\w+::)*\w+)(?:\s+final)?\s*(?::[^:].*)?$", re.DOTALL)
NAME_OF_FUNCTION = re.compile(r"((?:~?\w+(?:<[^<>]*>)?::)*(?:operator\s*\S+?|~?\w+))\s*\(")


def blanked(text):
    """The text without comments and literals; every line keeps its place."""
    return LITERAL.sub(lambda match: "\n" * match[0].count("\n") if match[0].startswith(("/", "R")) else '""' if match[0][0] == '"' else "' '", text)


def blocks(text):
    """(head, line of the head, position of '{', position after '}', depth) of every brace block, outermost first."""
    found, open_blocks, start = [], [], 0
    for at, character in enumerate(text):
        if character == "{":
            head = text[start:at].strip()
            open_blocks.append((head, text.count("\n", 0, start + len(text[start:at]) - len(text[start:at].lstrip())) + 1, at, len(open_blocks)))
            start = at + 1
        elif character == "}":
            head, line, begin, depth = open_blocks.pop()
            found.append((head, line, begin, at + 1, depth))
            start = at + 1
        elif character == ";":
            start = at + 1
    return sorted(found, key=lambda block: block[2])


def is_function(head):
    """Whether a brace block with this head is the body of a function."""
    head = re.sub(r"^(?:public|private|protected):\s*", "", head)
    if not head or "(" not in head or ")" not in head or head.endswith(("=", ",", "(", "return")):
        return False
    first = re.match(r"[\w:~]+", head)
    if first and first[0] in CONTROL:
        return False
    tail = head[head.rindex(")") + 1:]
    return not re.search(r"[=,(\[]\s*$", head) and bool(re.fullmatch(r"\s*(?:const|noexcept|override|final|mutable|&|&&|->[^;{}]*|requires[^;{}]*|:[^;]*|\s)*", tail)) and "[" not in head.split("(")[0]


def functions(text):
    """Every function with a body, lambdas and nested classes apart."""
    plain = blanked(text)
    result = []
    for head, line, begin, end, _ in blocks(plain):
        if is_function(head):
            names = NAME_OF_FUNCTION.findall(head)
            result.append(Function(names[0] if names else head[:40], line, plain.count("\n", 0, end) + 2 - line))
    return result


def without_blocks(body):
    """The text of a class without the bodies of its functions and nested classes: each becomes ';' or '{}'."""
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
    """(access, declaration) of every declaration directly in a class."""
    access = "public" if is_struct else "private"
    text = without_blocks(body)
    for part in re.split(r";|\{\}(?!\s*[;,)])", text):
        while True:
            label = re.match(r"\s*(public|private|protected):", part)
            if not label:
                break
            access, part = label[1], part[label.end():]
        part = re.sub(r"\{\}?", "", part).strip()
        if part:
            yield access, part


def classes(text):
    """Every class and struct with its counts; operators, constructors and destructors do not count as functions."""
    plain = blanked(text)
    result = []
    for head, line, begin, end, _ in blocks(plain):
        match = HEAD_OF_CLASS.search(re.sub(r"template\s*<[^{}]*?>\s*(?=class|struct)", "", head))
        if not match or "enum" in head or "(" in head:
            continue
        name = match[1].split("::")[-1]
        public = data = 0
        for access, part in statements(plain[begin + 1:end - 1], re.search(r"\bstruct\s", head) is not None):
            if re.match(r"(?:using|typedef|friend|enum|class|struct|template\s*<[^;]*>\s*(?:class|struct)|static_assert)\b", part):
                continue
            if re.search(r"\boperator\b", part):
                continue
            called = NAME_OF_FUNCTION.search(re.sub(r"^template\s*<.*?>\s*(?=\w)", "", part, flags=re.DOTALL))
            is_call = called is not None and not re.match(r"[^(]*=\s*[^(]", part.split("(")[0] + "(") and not re.search(r"std::function<[^;]*$", part.split(called[1] + "(")[0] if called else "")
            if is_call:
                public += access == "public" and called[1].lstrip("~") != name
            elif not re.match(r"(?:static|constexpr|inline)\b", part):
                data += 1 + without_angles(part).count(",")
        result.append(Class(name, line, public, data))
    return result


def without_angles(text):
    """The text without template arguments, initial values and indices."""
    text = re.sub(r"=[^,]*", "", text)
    while True:
        shorter = re.sub(r"<[^<>]*>|\([^()]*\)|\[[^\[\]]*\]", "", text)
        if shorter == text:
            return text
        text = shorter
