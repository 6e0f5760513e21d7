"""Run the command line inside a test."""

from pgm_bma.commands.main import main


def run(capsys, *words, code=0):
    """Run a command; returns (standard output, standard error)."""
    try:
        found = main([str(word) for word in words])
    except SystemExit as end:  # argparse ends the program on wrong words
        found = end.code
    said = capsys.readouterr()
    assert found == code, said.err
    return said.out, said.err
