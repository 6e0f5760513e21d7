"""The command line ``pgm-bma``. Help starts at once: libraries are imported by the command that needs them."""

import argparse
import sys

from pgm_bma import __version__


def main(argv=None):
    """Run one command; returns the exit code (0 done, 1 failed, 2 wrong words)."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 2
    try:
        return arguments.run(arguments) or 0
    except (ValueError, OSError, KeyError) as error:
        print(f"pgm-bma: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 1


def build_parser():
    parser = argparse.ArgumentParser(
        prog="pgm-bma",
        description="Average over graphical-model structures of discrete data instead of betting on one.",
    )
    parser.add_argument("--version", action="version", version=f"pgm-bma {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    demo = commands.add_parser("demo", help="run the main jobs on embedded data and write what they find")
    demo.add_argument(
        "--out", default="pgm-bma-demo", help="folder for models, pictures and labels (default: %(default)s)"
    )
    demo.set_defaults(run=run_demo)
    datasets = commands.add_parser("datasets", help="list the embedded data sets and networks")
    datasets.set_defaults(run=run_datasets)
    return parser


def run_demo(arguments):
    from pgm_bma.demo import run

    run(arguments.out)


def run_datasets(arguments):
    from pgm_bma.datasets import list_datasets, list_networks, load_dataset

    print(f"{'data set':<16}{'rows':>8}{'columns':>9}  target")
    for name in list_datasets():
        frame, target = load_dataset(name)
        print(f"{name:<16}{len(frame):>8}{frame.shape[1]:>9}  {target}")
    print(f"\nnetworks: {', '.join(list_networks())}")
