"""Above the port nothing depends on the machine: the same records give the same steps, on Kafka and in a simulation."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import stream_peer

PACKAGE = Path(stream_peer.__file__).parent
BELOW = {"faust_bridge.py", "process.py"}
"""Files of ``kafka/worker`` that carry out what the port promises: the broker's side, and the machine's."""

MACHINE = {"time", "uuid", "random", "secrets", "threading", "concurrent", "multiprocessing", "subprocess"}
CALLS = {"to_thread", "run_in_executor", "today", "utcnow", "urandom"}
TASKS = {"create_task", "ensure_future", "TaskGroup"}
SETS = {"set", "frozenset"}

FILES = [
    *(path for path in sorted((PACKAGE / "kafka" / "worker").glob("*.py")) if path.name not in BELOW),
    *(path for room in ("log", "questions", "feeds") for path in sorted((PACKAGE / room).rglob("*.py"))),
]


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text()))


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def called(path: Path) -> set[str]:
    functions = (node.func for node in nodes(path) if isinstance(node, ast.Call))
    return {
        function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "") for function in functions
    }


def name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", FILES, ids=name)
def test_nothing_above_the_port_asks_the_machine_for_time_chance_or_threads(path: Path) -> None:
    assert not {module.split(".")[0] for module in imported(path)} & MACHINE
    assert not called(path) & CALLS


def test_everything_above_the_port_is_typed() -> None:
    """``Any`` would hide what else of Faust is used. What a rebuild folds into is its stage's own affair."""
    files = [path for path in FILES if path.parent.name == "worker"]
    typed = {path.name: ast.parse(path.read_text().replace("PublishingStage[Any]", "Published")) for path in files}

    assert not [
        name for name, tree in typed.items() if any(getattr(node, "id", "") == "Any" for node in ast.walk(tree))
    ]


def test_the_worker_alone_hands_the_machine_to_what_is_above_the_port() -> None:
    users = {path.name for path in FILES if "stream_peer.kafka.worker.process" in imported(path)}

    assert users == {"worker.py"}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_task_is_started_where_an_error_in_it_ends_the_process(path: Path) -> None:
    starts = called(path) & TASKS
    assert not starts or path.name == "port.py", starts


FREE_OF_ORDER = {"sorted", "set", "frozenset", "sum", "any", "all", "min", "max", "len", "Counter", "update"}
ANNOTATED = ("set[", "frozenset[", "Set[", "AbstractSet[")


def is_set(expression: ast.expr, known: set[str]) -> bool:
    """Whether it is written as a set, or names one."""
    if isinstance(expression, ast.BinOp):
        return is_set(expression.left, known) or is_set(expression.right, known)
    if isinstance(expression, ast.Call):
        return getattr(expression.func, "id", "") in SETS
    return isinstance(expression, ast.Set | ast.SetComp) or ast.unparse(expression) in known


def sets_of(tree: ast.AST) -> set[str]:
    """Names and attributes that hold sets, by annotation or assignment."""
    known: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            target = node.arg if isinstance(node, ast.arg) else ast.unparse(node.target)
            if ast.unparse(node.annotation).startswith(ANNOTATED):
                known.add(target)
        elif isinstance(node, ast.Assign) and is_set(node.value, known):
            known |= {ast.unparse(target) for target in node.targets}
    return known


def unordered(scope: ast.AST, known: set[str]) -> Iterator[ast.expr]:
    """Sets that a loop, a comprehension or a list goes through, unless what comes of it has no order either."""
    free = {
        argument
        for node in ast.walk(scope)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in FREE_OF_ORDER
        for argument in node.args
    }
    for node in ast.walk(scope):
        if isinstance(node, ast.For | ast.AsyncFor):
            through = [node.iter]
        elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp) and node not in free:
            through = [generator.iter for generator in node.generators]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"list", "tuple", "next", "iter"}:
            through = node.args[:1]
        else:
            continue
        yield from (each for each in through if is_set(each, known))


def functions(path: Path) -> Iterator[tuple[ast.AST, set[str]]]:
    """Every function with the names of sets in it, and those of its module's attributes."""
    tree = ast.parse(path.read_text())
    attributes = {known for known in sets_of(tree) if known.startswith("self.")}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, sets_of(node) | attributes


@pytest.mark.parametrize("path", FILES, ids=name)
def test_no_loop_follows_the_order_of_a_set_which_differs_between_processes(path: Path) -> None:
    found = {ast.unparse(each) for function, known in functions(path) for each in unordered(function, known)}

    assert not found
