"""The command ``fssgd``; it parses, calls the library and prints."""


def main() -> None:
    """Run the command."""
    import typer

    from fssgd.cli._bench import bench
    from fssgd.cli._demo import demo

    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
    app.command()(demo)
    app.command()(bench)
    app(prog_name="fssgd")
