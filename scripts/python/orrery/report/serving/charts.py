"""Charts as SVG that needs no JavaScript."""
import math

from ...units import readable
from ..studies.sections import esc, tag

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8a8a", "#5c6570")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 620, 240, 62, 34, 10, 14
MOST_LEGEND = 8


def ticks(low, high, count=5):
    """Returns round numbers between two numbers."""
    if not high > low:
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / count))
    step = next(step * factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= count)
    first = math.ceil(low / step - 1e-9)
    return [step * k for k in range(first, int(high / step + 1e-9) + 1)]


def written(value, unit):
    return (
        f"{100 * value:.4g} %" if unit == "share" else readable(float(value), unit) if unit == "s" else f"{value:.4g}"
    )


class Plot:
    """A plane with axes, on which lines and bars are drawn."""

    def __init__(self, name, x, y, x_unit, y_unit, height=HEIGHT):
        """x, y: (low, high) of the axes; x_unit, y_unit: "s", "share" or "1"."""
        self.name, self.height = name, height
        self.x, self.y = x, (y[0], y[1] if y[1] > y[0] else y[0] + 1)
        if not x[1] > x[0]:
            self.x = (x[0], x[0] + 1)
        self.parts, self.legend = [], []
        for value in ticks(*self.x):
            at = self.at_x(value)
            self.parts.append(tag("line", x1=at, x2=at, y1=TOP, y2=height - BOTTOM, class_="grid"))
            self.parts.append(
                tag("text", esc(written(value, x_unit)), x=at, y=height - BOTTOM + 16, text_anchor="middle")
            )
        for value in ticks(*self.y) if y_unit else ():
            at = self.at_y(value)
            self.parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, class_="grid"))
            self.parts.append(
                tag("text", esc(written(value, y_unit)), x=LEFT - 6, y=round(at + 4, 1), text_anchor="end")
            )

    def at_x(self, value):
        return round(LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT), 1)

    def at_y(self, value):
        return round(
            self.height - BOTTOM - (value - self.y[0]) / (self.y[1] - self.y[0]) * (self.height - BOTTOM - TOP), 1
        )

    def line(self, xs, ys, label, colour):
        points = " ".join(f"{self.at_x(x)},{self.at_y(y)}" for x, y in zip(xs, ys))
        self.parts.append(tag("polyline", points=points, fill="none", stroke=colour, stroke_width=1.6))
        self._tell(label, colour)

    def dots(self, xs, ys, colour):
        self.parts += [tag("circle", cx=self.at_x(x), cy=self.at_y(y), r=3.2, fill=colour) for x, y in zip(xs, ys)]

    def bar(self, begin, end, row, rows, colour, told):
        """Draws a bar from one x to another in one of so many rows."""
        high = (self.height - BOTTOM - TOP) / rows
        left, right = self.at_x(max(begin, self.x[0])), self.at_x(min(end, self.x[1]))
        if right >= left:
            self.parts.append(
                tag(
                    "rect",
                    tag("title", esc(told)),
                    x=left,
                    y=round(TOP + row * high + 0.1 * high, 1),
                    width=round(max(0.5, right - left), 1),
                    height=round(0.8 * high, 1),
                    fill=colour,
                )
            )

    def upright(self, x, label):
        """Draws a line that marks a value of x."""
        if self.x[0] <= x <= self.x[1]:
            at = self.at_x(x)
            self.parts.append(tag("line", x1=at, x2=at, y1=TOP, y2=self.height - BOTTOM, class_="mark"))
            is_left = at < WIDTH * 0.6
            self.parts.append(
                tag(
                    "text",
                    esc(label),
                    x=at + (4 if is_left else -4),
                    y=self.height - BOTTOM - 6,
                    class_="marked",
                    text_anchor="start" if is_left else "end",
                )
            )

    def level(self, y, label):
        at = self.at_y(y)
        self.parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, class_="mark"))
        self.parts.append(tag("text", esc(label), x=LEFT + 4, y=at - 4, class_="marked"))

    def _tell(self, label, colour):
        if label and len(self.legend) < MOST_LEGEND:
            self.legend.append(
                tag("span", tag("span", class_="swatch", style=f"background: {colour}"), esc(label), class_="key")
            )

    def note(self, label, colour):
        """Adds a line to the legend."""
        self._tell(label, colour)

    def html(self):
        svg = tag(
            "svg", *self.parts, viewBox=f"0 0 {WIDTH} {self.height}", role="img", aria_label=self.name, class_="plot"
        )
        return tag("figure", tag("figcaption", esc(self.name), " ", *self.legend), svg)
