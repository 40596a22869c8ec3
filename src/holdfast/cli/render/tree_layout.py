"""Tree layout: the rows of a tree as lines in columns, and the forms in which a tree is drawn.

A tree that is too long for its screen is drawn in the first form in which it fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.cli.app.terminal import cut, paint, width_of

# Ages stand at the right edge, but on a wide screen not far from what they belong to.
AGE_EDGE = 80
LEAST_COLUMN = 12
LEAST_TITLE = 4
BETWEEN = " → "


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """The room for a tree; without `rows` it may be of any length."""

    columns: int
    rows: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeForm:
    """How much of each list of steps is drawn.

    `done` and `waiting` are how many such steps have a row of their own, `most` how many others;
    None is all of them, though of groups that are done only the last few, unless the tree is
    `unfolded`. `joined` puts a group and its only step under way into one row, and `below` gives
    what a step says a row of its own.
    """

    done: int | None = None
    waiting: int | None = None
    most: int | None = None
    joined: bool = False
    below: bool = True
    unfolded: bool = False

    @property
    def folds(self) -> bool:
        return self.waiting is not None


WHOLE = TreeForm()
UNFOLDED = TreeForm(unfolded=True)
# What a tree that is too long is drawn in, the first form that fits.
FORMS = (
    TreeForm(done=1, waiting=2),
    TreeForm(done=0, waiting=0),
    TreeForm(done=0, waiting=0, joined=True),
    TreeForm(done=0, waiting=0, joined=True, below=False),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeRow:
    """One line of a tree: a step with its details in a column, or other text.

    The `label` of a step is the path to it from the row above; `age` stands at the right edge.
    """

    depth: int
    symbol: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    details: str = ""
    aligned: bool = False
    age: str = ""

    @property
    def indent(self) -> int:
        return 2 * self.depth

    @property
    def width(self) -> int:
        """The columns up to the end of the label."""
        return self.indent + 2 + width_of(BETWEEN.join(self.label))


def lay_out_rows(rows: Sequence[TreeRow], columns: int | None) -> list[str]:
    """The lines of some rows, the details of steps in one column, each cut to the columns."""
    column = max((row.width for row in rows if row.aligned), default=0)
    if columns is not None:
        column = min(column, max(LEAST_COLUMN, columns // 2))
    return [cut(_lay_out_row(row, column, columns), columns) for row in rows]


def _lay_out_row(row: TreeRow, column: int, columns: int | None) -> str:
    begun = " " * row.indent
    if row.symbol:
        label = _fit_label(row.label, _find_label_room(row, column, columns))
        begun += f"{paint(*row.symbol)} {label}"
        if row.details:
            begun += " " * ((column - width_of(begun) if row.aligned else 0) + 2)
    if not row.age:
        return (begun + row.details).rstrip()
    age = paint(row.age, "dim")
    if columns is None:
        return f"{begun}{row.details}  {age}"
    room = min(columns, AGE_EDGE) - width_of(begun) - width_of(age) - 2
    said = cut(row.details, max(LEAST_TITLE, room))
    return f"{begun}{said}{' ' * (room - width_of(said))}  {age}"


def _find_label_room(row: TreeRow, column: int, columns: int | None) -> int | None:
    if columns is None:
        return None
    # Half of the screen is left for the details of a row that has no column for them.
    own = columns - min(width_of(row.details) + 2, columns // 2)
    return max(LEAST_TITLE, (column if row.aligned else own) - row.indent - 2)


def _fit_label(label: tuple[str, ...], room: int | None) -> str:
    """The path to a step, whose groups are cut before the step itself is."""
    whole = BETWEEN.join(label)
    if room is None or width_of(whole) <= room or len(label) == 1:
        return cut(whole, room)
    last = f"{BETWEEN}{label[-1]}"
    left = room - width_of(last)
    if left < LEAST_TITLE:
        return cut(whole, room)
    return cut(BETWEEN.join(label[:-1]), left) + last
