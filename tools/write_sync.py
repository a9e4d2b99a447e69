"""Write client/sync.py, the sync client, from the async classes.

python -m tools.write_sync            write the file
python -m tools.write_sync --check    exit 1 when it is out of date

Every public method of the async classes gets a sync method with the same name, signature and
docstring, which runs it on the portal's thread. `HIDDEN` names the methods that the sync client
leaves out, `WRITTEN` has the bodies that do more than forward. A new async method needs no change
here.
"""

from __future__ import annotations

import ast
import copy
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator

from tools.generated_file import ROOT, write_or_check

PACKAGE = ROOT / "src/howdah"
WRITTEN_FILE = PACKAGE / "client/sync.py"

Function = ast.FunctionDef | ast.AsyncFunctionDef

# class → its file, and what its sync form forwards to; in the order they are written
SOURCES = {
    "Handle": ("client/handle.py", "self._bridge.handle(self.id)"),
    "JobType": ("client/job_type.py", "self._own"),
    "Registration": ("client/registry.py", "self._registration"),
    "ScheduleRegistration": ("client/schedule_registration.py", "self._registration"),
    "Schedules": ("client/schedules.py", "self._bridge.queue.schedules"),
    "Worker": ("worker.py", "self.asynchronous"),
    "Queue": ("client/queue.py", "self._bridge.queue"),
}

# Used between the async classes only.
HIDDEN = {"Queue.for_other_loop", "Queue.follower", "JobType.conn", "JobType.on"}

# The caller's own connection, which these methods may have to use.
CALLER_CONNECTION = {
    "Queue.enqueue": "conn",
    "Queue.enqueue_many": "conn",
    "JobType.enqueue": "self.asynchronous.conn",
    "JobType.enqueue_many": "self.asynchronous.conn",
}

# Bodies that do more than forward.
WRITTEN = {
    "Queue.__init__": """
        self._begin(
            Queue(
                dsn,
                listen_dsn=listen_dsn,
                pgbouncer=pgbouncer,
                connections=connections,
                call_timeout=call_timeout,
            )
        )
        """,
    "Queue.__repr__": """
        return f"<SyncQueue at {self._bridge.store.shown_dsn}>"
        """,
    "Queue.job": """
        registered = self.asynchronous.job(KEYWORDS)
        registration = SyncRegistration(registered, self._bridge)
        return registration if function is None else registration(function)
        """,
    "Queue.cron": """
        return SyncScheduleRegistration(self.asynchronous.cron(PASSED), self._bridge)
        """,
    "Queue.every": """
        return SyncScheduleRegistration(self.asynchronous.every(PASSED), self._bridge)
        """,
    "Queue.schedules": """
        return SyncSchedules(self._bridge)
        """,
    "JobType.__call__": """
        return self.asynchronous(*args, **kwargs)
        """,
    "JobType.__repr__": """
        return repr(self.asynchronous)
        """,
    "JobType.options": """
        with_options = self.asynchronous.options(KEYWORDS)
        return type(self)(with_options, self._bridge)
        """,
    "Registration.__call__": """
        own: Any = getattr(function, "asynchronous", function)  # of a SyncJobType
        return SyncJobType(self._registration(own), self._bridge)
        """,
    "ScheduleRegistration.__call__": """
        own: Any = getattr(function, "asynchronous", function)  # of a SyncJobType
        return SyncJobType(self._registration(own), self._bridge)
        """,
    "Handle.__repr__": """
        return f"<SyncHandle of job {self.id}>"
        """,
    "Worker.shut_down": """
        portal.call_soon(self.asynchronous.shut_down)
        """,
}

# Methods that only the sync classes have.
ADDED = {
    "Handle": """
        def __init__(self, id: UUID, bridge: SyncBridge, existed: bool = False) -> None:
            self.id: UUID = id
            self.existed: bool = existed
            self._bridge = bridge
        """,
    "JobType": """
        def __init__(self, job_type: JobType[P, R], bridge: SyncBridge) -> None:
            self.asynchronous: JobType[P, R] = job_type
            self.handler: Handler = job_type.handler
            self._own = job_type.on(bridge)
            self._bridge = bridge
        """,
    "Registration": """
        def __init__(self, registration: Registration, bridge: SyncBridge) -> None:
            self._registration = registration
            self._bridge = bridge
        """,
    "ScheduleRegistration": """
        def __init__(self, registration: ScheduleRegistration, bridge: SyncBridge) -> None:
            self._registration = registration
            self._bridge = bridge
        """,
    "Schedules": """
        def __init__(self, bridge: SyncBridge) -> None:
            self._bridge = bridge
        """,
    "Worker": """
        def __init__(self, worker: Worker) -> None:
            self.asynchronous: Worker = worker
            self.id: str = worker.id
        """,
    "Queue": """
        @classmethod
        def of(cls, queue: Queue) -> Self:
            \"\"\"Make the sync form of a queue: the same functions, and its own connections.\"\"\"
            sync_queue = cls.__new__(cls)
            sync_queue._begin(queue)
            return sync_queue

        def _begin(self, queue: Queue) -> None:
            self.asynchronous: Queue = queue
            self._bridge = SyncBridge(queue)

        def job_type(self, job_type: JobType[P, R]) -> SyncJobType[P, R]:
            \"\"\"Return the sync form of a job type that was registered with the async queue.\"\"\"
            if self.handlers.get(job_type.name) is not job_type.handler:
                raise BadInput(
                    f"{job_type!r} was registered with another queue: register it with this one"
                )
            return SyncJobType(job_type, self._bridge)
        """,
}

HEADER = '''"""The queue without `await`: the same methods, run on a private event-loop thread.

Written from queue.py, registry.py, schedule_registration.py, schedules.py, job_type.py, handle.py
and ../worker.py. Do not edit: `make sync` writes this file, `make check` compares it. portal.py is
the thread. sync_bridge.py runs calls with the caller's own connection in the caller's thread.
"""

from __future__ import annotations
'''

DOCSTRINGS = {
    "Worker": "Runs the jobs of one queue, on the portal's thread, until it is stopped.",
}


class ToSync(ast.NodeTransformer):
    """Rewrites annotations: sync class names, iterables and generators."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(f"Sync{node.id}") if node.id in SOURCES else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        right = ast.unparse(node.right)
        return (
            self.visit(node.left)
            if right.startswith("AsyncIterable[")
            else (self.generic_visit(node))
        )

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if ast.unparse(node.value) == "AsyncGenerator":
            inner = ast.unparse(node.slice).strip("()")
            return ast.parse(f"Generator[{inner}, None]", mode="eval").body
        return self.generic_visit(node)


def plain(text: str) -> str:
    """Remove `await` and `async` from a docstring."""
    return re.sub(r"\bawait |\basync (?=with|for)", "", text)


def decorators(function: Function) -> set[str]:
    return {ast.unparse(decorator) for decorator in function.decorator_list}


def signature(function: Function) -> str:
    name = {"__aenter__": "__enter__", "__aexit__": "__exit__"}.get(function.name, function.name)
    arguments = ast.unparse(ToSync().visit(copy.deepcopy(function.args)))
    assert function.returns is not None, f"{function.name} has no return annotation"
    returns = ast.unparse(ToSync().visit(copy.deepcopy(function.returns)))
    lines = [f"@{decorator}" for decorator in sorted(decorators(function))]
    return "\n".join([*lines, f"def {name}({arguments}) -> {returns}:"])


def passed(function: Function, replace: dict[str, str] | None = None) -> str:
    """Write the arguments of a call that forwards a function's parameters."""
    replace = replace or {}
    parameters = function.args
    parts = [replace.get(a.arg, a.arg) for a in (parameters.posonlyargs + parameters.args)[1:]]
    parts += [f"*{parameters.vararg.arg}"] if parameters.vararg else []
    parts += keywords(function)
    parts += [f"**{parameters.kwarg.arg}"] if parameters.kwarg else []
    return ", ".join(parts)


def keywords(function: Function) -> list[str]:
    """Write the keyword arguments of a call that forwards a function's options."""
    return [f"{a.arg}={a.arg}" for a in function.args.kwonlyargs]


def wrapped(value: str, returns: str) -> str:
    """Write the statement that returns a value in its sync form."""
    if returns == "Self":
        return f"{value}\nreturn self"
    if returns == "None":
        return value
    if returns.startswith("Handle["):
        return f"handle = {value}\nreturn SyncHandle(handle.id, self._bridge, handle.existed)"
    if returns == "Worker":
        return f"return SyncWorker({value})"
    assert not re.search(rf"\b({'|'.join(SOURCES)})\b", returns), (
        f"write_sync.py has no sync form for {returns}: add it to wrapped()"
    )
    return f"return {value}"


def forwarding(cls: str, function: Function) -> str:
    """Write a body that forwards to the async method."""
    target = SOURCES[cls][1]
    returns = ast.unparse(function.returns) if function.returns else ""
    conn = CALLER_CONNECTION.get(f"{cls}.{function.name}")
    if "property" in decorators(function):
        return f"return {target}.{function.name}"
    if function.name == "enqueue_many":
        call = f"{target}.{function.name}({passed(function, {'drafts': 'stream'})})"
        return f"""
            enqueued: Any = self._bridge.feed(drafts, lambda stream: {call}, {conn})
            if returning == "handles":
                return [
                    SyncHandle(each.id, self._bridge, each.existed) for each in enqueued
                ]
            return enqueued
        """
    call = f"{target}.{function.name}({passed(function)})"
    if isinstance(function, ast.FunctionDef):
        return wrapped(call, returns)
    if returns.startswith("AsyncGenerator["):
        return f"yield from portal.each({call})"
    run = f"self._bridge.run({call}, {conn})" if conn else f"portal.run({call})"
    return wrapped(run, returns)


def method(cls: str, function: Function) -> str:
    lines = [signature(function)]
    if "overload" in decorators(function):
        return f"{lines[0]} ..."
    if doc := ast.get_docstring(function, clean=False):
        lines.append(f'    """{plain(doc)}"""')
    body = WRITTEN.get(f"{cls}.{function.name}") or forwarding(cls, function)
    body = body.replace("KEYWORDS", ", ".join(keywords(function)))
    body = body.replace("PASSED", passed(function))
    lines.append(textwrap.indent(textwrap.dedent(body).strip(), "    "))
    return "\n".join(lines)


def public(cls: ast.ClassDef) -> Iterator[Function]:
    """Yield the methods that get a sync form."""
    for node in cls.body:
        if not isinstance(node, Function):
            continue
        own = f"{cls.name}.{node.name}"
        hidden = node.name.startswith("_") and not node.name.endswith("__")
        constructor = node.name == "__init__" and own not in WRITTEN
        if not hidden and not constructor and own not in HIDDEN:
            yield node


def sync_class(cls: ast.ClassDef) -> str:
    """Write one class."""
    bases = ", ".join(ast.unparse(base) for base in cls.bases)
    doc = DOCSTRINGS.get(cls.name) or ast.get_docstring(cls, clean=False) or ""
    methods = [method(cls.name, function) for function in public(cls)]
    position = 1 if f"{cls.name}.__init__" in WRITTEN else 0
    methods.insert(position, textwrap.dedent(ADDED[cls.name]).strip())
    body = "\n\n".join(methods)
    head = f"class Sync{cls.name}({bases}):" if bases else f"class Sync{cls.name}:"
    return "\n".join([head, f'    """{plain(doc)}"""', "", textwrap.indent(body, "    ")])


def imports(trees: list[ast.Module], code: str) -> str:
    """Write the import of every name that the sync classes use, as in the async modules."""
    known = {
        "portal": "howdah.client",
        "SyncBridge": "howdah.client.sync_bridge",
        "Generator": "collections.abc",
        **{
            name: "howdah." + file.removesuffix(".py").replace("/", ".")
            for name, (file, _) in SOURCES.items()
        },
    }
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                known |= {alias.asname or alias.name: node.module for alias in node.names}
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    return "\n".join(f"from {known[name]} import {name}" for name in sorted(used) if name in known)


def formatted(code: str) -> str:
    """Sort the imports, and format the code."""
    ruff = [sys.executable, "-P", "-m", "ruff"]
    for command in (
        ["check", "--quiet", "--fix", "--select", "I", "--stdin-filename", WRITTEN_FILE, "-"],
        ["format", "--quiet", "--stdin-filename", WRITTEN_FILE, "-"],
    ):
        done = subprocess.run(  # noqa: S603 - our own command
            [*ruff, *map(str, command)], input=code, text=True, capture_output=True, check=True
        )
        code = done.stdout
    return code


def sync_client() -> str:
    trees = {file: ast.parse((PACKAGE / file).read_text()) for file, _ in SOURCES.values()}
    classes = [
        sync_class(node)
        for name, (file, _) in SOURCES.items()
        for node in trees[file].body
        if isinstance(node, ast.ClassDef) and node.name == name
    ]
    code = "\n\n\n".join(['P = ParamSpec("P")\nR = TypeVar("R")', *classes])
    return formatted(f"{HEADER}\n{imports(list(trees.values()), code)}\n\n{code}\n")


def main() -> int:
    return write_or_check({WRITTEN_FILE: sync_client()}, sys.argv[1:], "make sync")


if __name__ == "__main__":
    sys.exit(main())
