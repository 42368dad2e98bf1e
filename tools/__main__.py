"""The command line: `python -m tools COMMAND`.

Each command is the function `command` of a module, which is imported when it is called, so that
one command's dependencies are no other's.
"""

import importlib
import sys

_NO_ENVIRONMENT = "{} is missing: run `make setup` and use .venv/bin/python -m tools"

try:
    import typer
except ModuleNotFoundError as error:
    sys.exit(_NO_ENVIRONMENT.format(error.name))

COMMANDS = {
    "build": ("tools.build", "Build the tree for a board (mpy-cross over every device file)."),
    "deploy": ("tools.deploy", "Bring the build onto a board."),
    "repl": ("tools.repl", "Attach to a board's REPL without a reset."),
    "status": ("tools.status", "Print a running board's status page, and let it go on."),
    "vboard": ("tools.vboard.command", "Run a virtual board and print its port."),
    "listen": ("tools.listen", "Subscribe to the boards' topics, decode and show."),
    "command": ("tools.command", "Give a board a command, and print its reply."),
    "decode": ("tools.decode", "Decode one batch from a file."),
    "size": ("tools.size", "How long a buffer lasts, and what a month of its readings costs."),
    "demo": ("tools.demo", "Run the whole line through an outage, and account for every item."),
    "bench": ("tools.bench", "Run the benchmarks; a table and build/bench.json."),
    "conformance": ("tools.conformance", "Write docs/conformance.md from the tests."),
    "field-reports": ("tools.field_reports", "Write docs/field-reports.md from the tests."),
    "config-table": ("tools.config_table", "Write the configuration table where it is documented."),
}

app = typer.Typer(help="millpond's tools for the host.", no_args_is_help=True, add_completion=False)
# A value such as -5 is no option, but one for the board to judge.
_NEGATIVE = {"command": {"ignore_unknown_options": True}}
_PASS_ALL = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def _register(name: str, module: str, help_line: str) -> None:
    @app.command(name, help=help_line, context_settings=_PASS_ALL)
    def run(context: typer.Context) -> None:
        command = typer.Typer(add_completion=False)
        try:
            command.command(context_settings=_NEGATIVE.get(name, {}))(
                importlib.import_module(module).command
            )
        except ModuleNotFoundError as error:
            sys.exit(_NO_ENVIRONMENT.format(error.name))
        command(args=context.args, prog_name=f"python -m tools {name}")


for _name, (_module, _help) in COMMANDS.items():
    _register(_name, _module, _help)

if __name__ == "__main__":
    app(prog_name="python -m tools")
