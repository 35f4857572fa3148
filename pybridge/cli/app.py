"""The command `pybridge`. Exit status: 0 fine, 1 something failed or disagrees, 2 it was used wrongly."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from ..errors import PyBridgeError, UnknownOption
from .examples import Example, example_of, numbers, program_of, words
from .progress import doing, status
from .showing import Derivative, derivatives, execution, keep, plan_of

app = typer.Typer(
    help="The bridge between JAX and Julia's automatic differentiation.",
    epilog=(
        "FUNCTION is module:function or path/to/file.py:function. ARGUMENTS are types for random numbers "
        "(f32[32,64], f32[64]:0.5..2, i32[10]:0..5), numbers (1.5) or files (@x.npy); without any, the "
        "function's attribute example_args or what its module's example_args(name) returns."
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # without frames, the options of each command fit a screen
    pretty_exceptions_enable=False,
)

_WIDTH = 118  # of tables where the output is no terminal
_NO_BENCHMARKS = (
    "there are no benchmarks here: run it in a checkout of pybridge, where --help shows its options"
)
_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
_ON_A_FUNCTION: dict[str, Any] = {
    "context_settings": {"ignore_unknown_options": True},  # -2 is an argument
    "epilog": "`pybridge --help` says what FUNCTION and ARGUMENTS are.",
}

ENGINES = "transpose, enzyme, jax, enzyme-jax"
"""Those of `engines.ENGINES`, which imports JAX: `--help` takes no time."""

Function = Annotated[str, typer.Argument(metavar="FUNCTION", hidden=True)]
Arguments = Annotated[list[str] | None, typer.Argument(metavar="ARGUMENTS", hidden=True)]
Seed = Annotated[int, typer.Option(help="Of the random numbers.")]
StaticArgnums = Annotated[
    str | None, typer.Option("--static-argnums", help="Arguments that are no arrays: 1,-1.")
]
StaticArgnames = Annotated[
    str | None, typer.Option("--static-argnames", help="Such arguments by name: n,mode.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"pybridge {__version__}")
        raise typer.Exit(0)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def doctor(
    rules: Annotated[bool, typer.Option("--rules", help="Count transpose rules over JVP rules.")] = False,
    debug: Debug = False,
) -> None:
    """Show what is available, what is missing, and what to do."""
    with _errors(debug):
        if rules:
            _show_rules()
            return
        from ..api.doctor import doctor as examine

        report = examine()
        _output().print(report)
        raise typer.Exit(0 if report.healthy else 1)


@app.command()
def setup(
    yes: Annotated[bool, typer.Option("--yes", help="Allow Debian's package, installed as root.")] = False,
    image: Annotated[
        bool, typer.Option(help="Compile JaxprAD into an old Julia's system image: minutes, once.")
    ] = True,
    enzyme: Annotated[
        bool, typer.Option("--enzyme", help='Install Enzyme.jl as well, for engine="enzyme".')
    ] = False,
    debug: Debug = False,
) -> None:
    """Get a Julia if there is none, and prepare it."""
    with _errors(debug):
        from ..runtime.julia import installing
        from ..runtime.kernel_files import prepare

        with installing.rich_progress() as progress:
            outcome = installing.setup(yes, progress, compiled=image, enzyme=enzyme)
            if image:
                progress("compiling what kernels share", None)
                prepare()
        typer.echo(f"Julia {outcome.julia.version} is ready: {outcome.how}")


@app.command()
def cache(
    prune: Annotated[
        int | None,
        typer.Option(metavar="MEGABYTES", help="Drop the least recently used, down to this."),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Drop everything.")] = False,
    debug: Debug = False,
) -> None:
    """Show what pybridge keeps between processes; drop some of it, and system images of other versions."""
    with _errors(debug):
        from .. import cache as kept
        from ..runtime.julia.image import drop_outdated

        store = kept.default()
        if store is None:
            place = kept.folder()
            typer.echo(f"{place} is not used" if place else f"turned off by {kept.SETTING}")
            raise typer.Exit(0)
        if clear or prune is not None:
            images = drop_outdated()  # first: it looks for a Julia, and what that says is kept
            dropped = store.prune(0 if clear or prune is None else prune << 20)
            typer.echo(f"dropped {dropped.entries} entries, {dropped.megabytes}")
            typer.echo(f"dropped {images.entries} system images, {images.megabytes}")
        usage = store.usage()
        typer.echo(f"{store.place}: {usage.entries} entries, {usage.megabytes}")


@app.command(**_ON_A_FUNCTION)
def show(
    function: Annotated[str, typer.Argument(metavar="FUNCTION|ARCHIVE", hidden=True)],
    arguments: Arguments = None,
    derivative: Annotated[Derivative | None, typer.Option(help="Of this, not of the function.")] = None,
    optimize: Annotated[bool, typer.Option("--optimize", help="With fewer equations.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say if it runs natively, or why not.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Not the Program, but what the compiler makes of it.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write an archive instead of printing.")
    ] = None,
    static_argnums: StaticArgnums = None,
    static_argnames: StaticArgnames = None,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Print the Program of a function or archive, or of a derivative.

    `grad` is what `jax.grad` runs, `hvp` the Hessian times a vector.
    """
    with _errors(debug), program_of(function, arguments, seed, static_argnums, static_argnames) as program:
        made = [p.optimize() if optimize else p for p in derivatives(program, derivative)]
        if output is not None:
            _check_folder(output)
            keep(output, made, explain or plan)
            return
        for shown in made:
            typer.echo(plan_of(shown) if plan else str(shown), nl=False)
            if explain:
                typer.echo(f"# {execution(shown)}")


@app.command(**_ON_A_FUNCTION)
def compare(
    function: Function,
    arguments: Arguments = None,
    engines: Annotated[str | None, typer.Option(help=f"Of {ENGINES}, with commas between.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the numbers to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write it as a page to this file.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print it to be pasted.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Write the picture: .png, .svg or .pdf.")] = None,
    rtol: Annotated[float | None, typer.Option(help="The relative error that is agreement.")] = None,
    order: Annotated[int, typer.Option(help="2 for second derivatives too.")] = 1,
    repeats: Annotated[int, typer.Option(help="Rounds of timing; 0 for none.")] = 10,
    timeout: Annotated[float, typer.Option(help="Seconds for an engine apart.")] = 600.0,
    static_argnums: StaticArgnums = None,
    static_argnames: StaticArgnames = None,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Run every engine on a function.

    Status 1 if one disagrees, one of --engines fails, or the derivative is wrong.
    """
    with (
        _errors(debug),
        example_of(function, arguments, seed, static_argnums, static_argnames) as (f, args, static),
    ):
        from ..comparison import compare as run
        from ..comparison import picture_format

        for file in filter(None, (json, html, plot)):
            _check_folder(file)
        if plot is not None:
            picture_format(plot)
        named = words(engines) if engines else None
        with status("comparing") as progress:
            result = run(
                f,
                *args,
                engines=named,
                order=order,
                seed=seed,
                repeats=repeats,
                timeout=timeout,
                rtol=rtol,
                progress=progress,
                **static,
            )
        if markdown:
            typer.echo(result.to_markdown())
        else:
            _output().print(result)
        _write((json, result.save_json), (html, result.to_html), (plot, result.plot))
        failed = [name for name in named or [] if not result[name].ran or result[name].failed]
        raise typer.Exit(0 if result.ok and not failed else 1)


@app.command(**_ON_A_FUNCTION)
def check(
    function: Function,
    arguments: Arguments = None,
    rtol: Annotated[float | None, typer.Option(help="The relative error to allow.")] = None,
    static_argnums: StaticArgnums = None,
    static_argnames: StaticArgnames = None,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Hold a function's derivative, by its own rules, against its value. Status 1 unless it is right."""
    with (
        _errors(debug),
        example_of(function, arguments, seed, static_argnums, static_argnames) as (f, args, static),
    ):
        from ..comparison import check as run

        with status("checking"):
            result = run(f, *args, seed=seed, rtol=rtol, **static)
        _output().print(result)
        raise typer.Exit(0 if result.ok else 1)


@app.command()
def fuzz(
    engines: Annotated[
        str, typer.Option(help=f"Of {ENGINES}, transpose/julia, or module:attribute.")
    ] = "jax,transpose",
    seconds: Annotated[float, typer.Option(help="How long.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the random Programs.")] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for what is found.")] = Path(
        "fuzz"
    ),
    first: Annotated[int, typer.Option(help="The number of the first Program.")] = 0,
    programs: Annotated[int | None, typer.Option(help="At most so many.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that an engine may take for a Program.")] = 60.0,
    debug: Debug = False,
) -> None:
    """Run engines on random Programs, against JAX in double precision.

    Status 1 if one is wrong, ends its process or hangs; a file in the folder reproduces each.
    """
    with _errors(debug), doing("fuzzing") as progress:
        if output.is_file():
            raise UnknownOption(f"{output} is a file, and --output names a folder")
        from ..fuzz import Settings
        from ..fuzz import fuzz as run

        settings = Settings(tuple(words(engines)), seconds, seed, output, first, programs, timeout)
        campaign = run(settings, progress)
        for found, path in campaign.findings.values():
            typer.echo(f"{path}: {found}")
        typer.echo(campaign.summary())
        raise typer.Exit(1 if campaign.findings else 0)


@app.command(**_ON_A_FUNCTION)
def blame(
    function: Function,
    arguments: Arguments = None,
    json: Annotated[Path | None, typer.Option(help="Write the report to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write it as a page to this file.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print it to be pasted.")] = False,
    static_argnums: StaticArgnums = None,
    static_argnames: StaticArgnames = None,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Find the equations that make NaN, infinities and rounding errors. Status 1 if there are any."""
    with (
        _errors(debug),
        example_of(function, arguments, seed, static_argnums, static_argnames) as (f, args, static),
    ):
        from ..comparison import blame as run

        for file in filter(None, (json, html)):
            _check_folder(file)
        with status("blaming") as progress:
            found = run(f, *args, seed=seed, progress=progress, **static)
        if markdown:
            typer.echo(found.to_markdown())
        else:
            _output().print(found)
        _write((json, found.save_json), (html, found.to_html))
        raise typer.Exit(0 if found.ok else 1)


@app.command(**_ON_A_FUNCTION)
def mixed(
    function: Function,
    error: Annotated[float, typer.Option(help="The relative error that results may have.")],
    arguments: Arguments = None,
    absolute: Annotated[float, typer.Option(help="An absolute error that is allowed in addition.")] = 0.0,
    json: Annotated[Path | None, typer.Option(help="Write the report to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write it as a page to this file.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write an archive of the mixed Program.")
    ] = None,
    static_argnums: StaticArgnums = None,
    static_argnames: StaticArgnames = None,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Find the equations that need 64 bits for an error. Status 1 where not even they keep it."""
    with (
        _errors(debug),
        example_of(function, arguments, seed, static_argnums, static_argnames) as (f, args, static),
    ):
        from ..comparison import mixed as run

        for file in filter(None, (json, html, output)):
            _check_folder(file)
        with status("narrowing") as progress:
            made = run(f, error=error, absolute=absolute, seed=seed, progress=progress, **static)(*args)
        _output().print(made.report)
        if output is not None:
            keep(output, [made.program], False)
        _write((json, made.report.save_json), (html, made.report.to_html))


@app.command(**_ON_A_FUNCTION)
def export(
    function: Function,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; of a library the folder.")
    ] = None,
    arguments: Arguments = None,
    platforms: Annotated[str, typer.Option(help="Names with commas between.")] = "cpu,cuda,tpu",
    linear_algebra: Annotated[str, typer.Option(help='"platform": by LAPACK, cuSOLVER.')] = "portable",
    vjp: Annotated[bool, typer.Option("--vjp", help="Its VJP: arguments, then cotangents.")] = False,
    vjp_order: Annotated[int, typer.Option(help="Orders of derivatives to keep.")] = 0,
    library: Annotated[
        str | None, typer.Option(metavar="NAME", help="Write libNAME.so, NAME.h and NAME.json for C.")
    ] = None,
    functions: Annotated[str, typer.Option(help="In the library: value,hvp …")] = "value",
    argnums: Annotated[str | None, typer.Option(help="Arguments of the library's derivatives.")] = None,
    processor: Annotated[str, typer.Option(help="Of the library: x86-64-v3 …")] = "native",
    static_argnums: StaticArgnums = None,
    static_argnames: StaticArgnames = None,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Write a function as StableHLO, for `jax.export`, or with --library for C.

    What is written needs neither pybridge nor Julia.
    """
    with (
        _errors(debug),
        example_of(function, arguments, seed, static_argnums, static_argnames, symbolic=True) as example,
    ):
        if library is not None:
            _write_library(example, library, functions, output or Path(), argnums, processor)
            return
        if output is None:
            raise UnknownOption("name the file to write by --output")
        _check_folder(output)
        from ..api.export import export as run

        by: Any = linear_algebra  # of which `export` tells what there is
        if vjp:
            exported: Any = example.program().vjp().optimize()
            made = run(exported, words(platforms), linear_algebra=by)()
        else:
            made = run(example.function, words(platforms), linear_algebra=by, **example.static)(
                *example.arguments
            )
        data = made.serialize(vjp_order=vjp_order)
        output.write_bytes(data)
        typer.echo(f"{output}: {len(data)} bytes for {', '.join(made.platforms)}")


def _write(*files: tuple[Path | None, Callable[[Path], None]]) -> None:
    """A report to each file that was asked for."""
    for path, write in files:
        if path is not None:
            write(path)


def _check_folder(path: Path) -> None:
    """Raises UnknownOption, before there is anything to be lost, where a file cannot be written."""
    if not path.parent.is_dir():
        raise UnknownOption(f"{path} cannot be written: there is no folder {path.parent}")
    if path.is_dir():
        raise UnknownOption(f"{path} cannot be written: it is a folder")


def _write_library(
    example: Example, name: str, functions: str, folder: Path, argnums: str | None, processor: str
) -> None:
    from ..api.library import compile_library

    by = None if argnums is None else numbers(argnums, "--argnums")
    options: dict[str, Any] = {"directory": folder, "argnums": by, "processor": processor, **example.static}
    made = compile_library(example.function, name, words(functions), **options)(*example.arguments)
    for path in (made.library, made.header, made.manifest):
        typer.echo(f"{path}: {path.stat().st_size} bytes")


@app.command(context_settings=_PASSED_ON)
def bench(context: typer.Context) -> None:
    """Compare native kernels with JAX, in a checkout: `python -m benchmarks`, with the same options."""
    with _errors(debug=False):
        if not (Path("benchmarks") / "rows").is_dir():
            if "--help" in context.args:
                typer.echo(f"{context.get_usage()}\n\n  {bench.__doc__}\n\n{_NO_BENCHMARKS}")
                raise typer.Exit(0)
            raise UnknownOption(_NO_BENCHMARKS)
    sys.path.insert(0, os.getcwd())  # a console script's has its own folder
    sys.argv[1:] = context.args
    runpy.run_module("benchmarks", run_name="__main__")


@app.command()
def gradbench(
    engine: Annotated[str, typer.Option(help=f"What makes the derivatives: {ENGINES}.")] = "transpose",
    execute: Annotated[str, typer.Option(help="auto, julia or xla, as for `pb.bridge`.")] = "auto",
    multithreaded: Annotated[
        bool, typer.Option("--multithreaded", help="On all processors, not on one.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Answer GradBench's evals: a tool of its protocol, on stdin and stdout."""
    with _errors(debug):
        from .tool import run

        run(engine, execute, multithreaded)


def _show_rules() -> None:
    from ..runtime.rule_table import PAPER, count_rules

    ours, jax = count_rules()
    for count in (ours, jax):
        typer.echo(
            f"{count.name}: {count.transpose} transpose rules over {count.jvp} JVP rules, {count.share:.0%}"
        )
    typer.echo(f"The paper on JAX's reverse mode by transposition: about {PAPER:.0%}")


def _output() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


@contextlib.contextmanager
def _errors(debug: bool) -> Iterator[None]:
    """pybridge's own exceptions as a panel, and the exit status that they stand for."""
    try:
        yield
    except PyBridgeError as error:
        if debug:
            raise
        title = type(error).__name__
        panel = Panel(Text(str(error)), title=title, title_align="left", border_style="red")
        Console(stderr=True, width=None).print(panel)
        raise typer.Exit(2 if isinstance(error, UnknownOption) else 1) from None
