#!/usr/bin/python3
"""The reader of C++ sources that test_house.py uses finds functions with their lengths and classes with their members."""
import pathlib
import sys
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import cpp_structure  # noqa: E402
import harness  # noqa: E402


def functions(text):
    """Returns {name: (line, length)} of the functions in a text."""
    return {
        function.name: (function.line, function.length) for function in cpp_structure.functions(textwrap.dedent(text))
    }


def classes(text):
    """Returns {name: (public functions, data members)} of the classes in a text."""
    return {
        found.name: (found.public_functions, found.data_members)
        for found in cpp_structure.classes(textwrap.dedent(text))
    }


class Functions(unittest.TestCase):
    def test_length_is_from_the_first_line_to_the_closing_brace(self):
        """A namespace has a function whose signature takes two lines, and one of a single line. Both have their first line and length."""
        self.assertEqual(
            functions(
                """\
            namespace orrery {
            int sum(int a,
                    int b) {
              return a + b;
            }
            int one() { return 1; }
            }  // namespace orrery
            """
            ),
            {"sum": (2, 4), "one": (6, 1)},
        )

    def test_members_constructors_and_operators_are_functions(self):
        """Members within and outside a class, a constructor and an operator are all found as functions."""
        self.assertEqual(
            functions(
                """\
            Npu::Npu(int id) : id_(id), queue_{1, 2} {
              start();
            }
            Time Npu::now() const noexcept { return now_; }
            bool operator<(Time a, Time b) { return a.ps < b.ps; }
            struct Pair {
              int sum() const { return a + b; }
              int a, b;
            };
            """
            ),
            {"Npu::Npu": (1, 3), "Npu::now": (4, 1), "operator<": (5, 1), "sum": (7, 1)},
        )

    def test_control_flow_and_lambdas_belong_to_the_function_around_them(self):
        """A function with a loop, a condition, an initial value in braces and a lambda is one function."""
        self.assertEqual(
            functions(
                """\
            void run(std::vector<int>& all) {
              for (int& i : all) {
                if (i > 0) {
                  i = std::max({i, 1});
                }
              }
              const auto twice = [](int i) {
                return 2 * i;
              };
              const Pair pair{twice(1), 2};
            }
            """
            ),
            {"run": (1, 11)},
        )

    def test_braces_in_comments_and_literals_do_not_count(self):
        """Braces stand in a line comment, a block comment, a string, a character and a raw string. They do not end the function."""
        self.assertEqual(
            functions(
                """\
            void print() {  // {
              /* { {
                 } */
              put("{", '{', R"({ "{ )");
            }
            void other() {}
            """
            ),
            {"print": (1, 5), "other": (6, 1)},
        )

    def test_declarations_are_no_functions(self):
        """Declarations, enumerations, and arrays with initial values have no functions."""
        self.assertEqual(
            functions(
                """\
            int declared(int a);
            enum class Kind { ring, switch_ };
            const std::array<int, 2> values = {1, 2};
            """
            ),
            {},
        )


class Classes(unittest.TestCase):
    def test_public_functions_and_data_members_are_counted(self):
        """A class has a constructor, a destructor, an operator, a template, a static and a private function, and data of many forms. Its three
        ordinary public functions and its five data members are counted."""
        self.assertEqual(
            classes(
                """\
            class Npu final : public Model {
             public:
              explicit Npu(int a) : a_(a), b_{1, 2} { run(); }
              ~Npu();
              int a() const { return a_; }
              template <class T>
              void each(T&& f);
              static int of(std::string_view text);
              bool operator==(const Npu&) const = default;
              using Number = int;

             private:
              void hidden();
              int a_ = 0, c_ = f(1, 2);
              std::vector<int> b_{1, 2};
              std::map<int, std::pair<int, int>> m_;
              std::function<void(int, int)> hook_;
              static constexpr int limit = 5;
            };
            """
            ),
            {"Npu": (3, 5)},
        )

    def test_all_functions_and_friends_are_counted(self):
        """A class has eight functions of all kinds, one of them private, a friend class, a friend function and a friend operator. The functions
        and the two friends that are no operators are counted."""
        text = textwrap.dedent(
            """\
            class Npu {
             public:
              explicit Npu(int a);
              ~Npu() = default;
              int a() const { return a_; }
              int a(int b) const;
              template <class T>
              void each(T&& f);
              bool operator<(const Npu& other) const;
              friend bool operator==(const Npu&, const Npu&) = default;
              friend int sum_of(const Npu& npu);

             private:
              friend class Model;
              class Hidden;
              static void hide();
              void hide(int a);
              int a_ = 0;
            };
            """
        )
        self.assertEqual([(found.functions, found.friends) for found in cpp_structure.classes(text)], [(8, 2)])

    def test_members_of_a_struct_are_public(self):
        """A struct has a function, and two data members on one line. All of them count as public."""
        self.assertEqual(
            classes("struct Pair {\n  int sum() const { return a + b; }\n  int a = 1, b = 2;\n};\n"), {"Pair": (1, 2)}
        )

    def test_nested_classes_count_for_themselves(self):
        """A class with a nested struct has its own members and not those of the struct."""
        self.assertEqual(
            classes(
                """\
            class Outer {
             public:
              struct Inner {
                int x, y;
                void move();
              };
              Inner inner() const;

             private:
              Inner inner_;
            };
            """
            ),
            {"Outer": (1, 1), "Inner": (1, 2)},
        )

    def test_forward_declarations_and_enumerations_are_no_classes(self):
        """A text has a forward declaration, an enumeration, and a function that takes a struct. No class is found."""
        self.assertEqual(classes("class Npu;\nenum class Kind { a, b };\nvoid f(struct Npu& npu) { npu.run(); }\n"), {})


if __name__ == "__main__":
    harness.main()
