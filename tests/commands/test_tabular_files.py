"""Tables from files of every kind; what is wrong with a file is said in one line."""

import bz2
import gzip
import lzma
import os
import threading

import numpy as np
import pandas as pd
import pytest

from pgm_bma.commands.preparation import conform, prepare
from pgm_bma.commands.tabular_files import read_table


@pytest.fixture
def write(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_quotes_accents_and_blanks(write):
    table = read_table(write('été , "taille, cm",n\n"oui, bien", 3 ,"a ""b"""\n  non,12,?\n'))
    assert list(table.frame.columns) == ["été", "taille, cm", "n"]
    assert table.frame.to_numpy().tolist() == [["oui, bien", 3, 'a "b"'], ["non", 12, "?"]]
    assert table.notes == ["1 cell of 'n' holds '?', taken as a value; if it means missing, add --missing '?'"]
    assert table.index.tolist() == [1, 2] and table.index.name == "row"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(write, encoding):
    table = read_table(write("naïve,b\nà,1\né,2\n".encode(encoding)))
    assert table.frame["naïve"].tolist() == ["à", "é"]
    assert bool(table.notes) == (encoding == "cp1252")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
def test_the_separator_is_guessed(write, separator):
    text = "\n".join(separator.join(row) for row in (["a", "b", "c"], ["x", "1", "u"], ["y", "2", "u"])) + "\n"
    table = read_table(write(text))
    assert table.frame.to_dict("list") == {"a": ["x", "y"], "b": [1, 2], "c": ["u", "u"]}


def test_decimal_commas_do_not_look_like_separators(write):
    assert read_table(write("a;b\n3,5;1\n2,25;2\n")).frame["a"].tolist() == [3.5, 2.25]
    assert read_table(write('a,b\n"1,234",x\n"2,500",y\n')).frame["a"].tolist() == ["1,234", "2,500"]  # thousands


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files(write, pack):
    assert read_table(write(pack(b"x\ty\n1\t2\n3\t4\n"), "t.tsv.gz")).frame.to_numpy().tolist() == [[1, 2], [3, 4]]


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {"a": pd.Categorical(["x", "?", None]), "b": [1, 2, None], "c": [True, False, True], "d": [1, 2, -9]}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet", missing=["?", "-9"]).frame
    assert read.isna().to_numpy().tolist() == [[False] * 4, [True, False, False, False], [True, True, False, True]]
    assert read["c"].tolist() == ["True", "False", "True"] and read["b"].iloc[1] == 2


def test_row_names_of_other_programs(write):
    from_r = read_table(write('"a","b"\n"1","x",3\n"2","y",4\n'))
    assert from_r.frame.to_dict("list") == {"a": ["x", "y"], "b": [3, 4]} and from_r.index.tolist() == [1, 2]
    from_pandas = read_table(write(",a,b\n0,x,3\n1,y,4\n"))
    assert from_pandas.frame.equals(from_r.frame) and from_pandas.index.tolist() == [0, 1]
    named = read_table(write("ID;a\nk7;x\nk2;y\n"))
    assert named.index.tolist() == ["k7", "k2"] and list(named.frame.columns) == ["a"]
    for text in ("a,b,\nx,3,\ny,4,\n", "a,b\nx,3,\ny,4,\n"):  # separators at the end of rows are no column
        assert read_table(write(text)).frame.equals(from_r.frame)


def test_a_first_column_that_is_data_stays(write):
    assert read_table(write("grade,a\n1,x\n2,y\n1,x\n")).frame.columns.tolist() == ["grade", "a"]
    assert read_table(write("name,a\nann,x\nbob,y\n")).frame.columns.tolist() == ["name", "a"]


def test_codes_are_not_numbers(write):
    frame = read_table(write("code,n,f\n007,1,1.5\n010,,2\n")).frame
    assert frame["code"].tolist() == ["007", "010"]
    assert frame["n"].iloc[0] == 1 and np.isnan(frame["n"].iloc[1])
    assert frame["f"].tolist() == [1.5, 2.0]


def test_files_without_a_header(write):
    assert read_table(write("u,v\nx,y\n"), header=False).frame.to_dict("list") == {"x1": ["u", "x"], "x2": ["v", "y"]}


@pytest.mark.parametrize(
    "content, said",
    [
        ("", "is empty"),
        ("\n\n", "holds no rows"),
        ("a,b\n", "has a header but no rows"),
        ("a,b\n1,2\n3\n", "row 2 below the header has 1 cell, the header has 2"),
        ("a,b\n1,2\n3,4,5\n", "row 2 below the header has 3 cells, the header has 2"),
        ("a,b\n" + "1,2\n" * 300 + "3,4,5\n", "row 301 below the header has 3 cells, the header has 2"),
        ("a,b\n" + "1,2\n" * 300 + "3\n", "row 301 below the header has 1 cell, the header has 2"),
        ("a,a\n1,2\n", "two columns called 'a'"),
        ("a,,b\n1,2,3\n", "column 2 has no name"),
        (b"\x89PNG\x00\x01", "is not a text table"),
        (gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:25], "cannot be unpacked"),
        (b"PAR1 nonsense PAR1", "Parquet"),
    ],
    ids=range(12),
)
def test_bad_files_say_what_is_wrong(write, content, said):
    with pytest.raises(ValueError) as error:
        read_table(write(content))
    assert said in str(error.value) and "\n" not in str(error.value)


def test_names_that_are_no_file():
    with pytest.raises(ValueError, match="did you mean 'voting'"):
        read_table("votin")
    with pytest.raises(ValueError, match="does not exist"):
        read_table("nothing/here.csv")
    assert read_table("zoo").target == "class"


def test_numbers_of_a_second_table_are_the_texts_of_the_first(write):
    first = prepare(read_table(write("a,y\n1234567,p\n1.0,q\n007,p\nabc,q\n")), target="y")
    frame, _, _, notes = conform(read_table(write("a,y\n1,p\n1234567,q\n1234567,q\n7,q\n", "second.csv")), first)
    assert frame["a"].tolist()[:3] == ["1.0", "1234567", "1234567"] and frame["a"].isna().tolist()[3]
    assert len(notes) == 1 and "'7' is not among the values" in notes[0]


def test_long_numbers_can_mean_missing_in_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": [1.0, 2.0, -9999999.0], "b": [1, 12345678, 3]}).to_parquet(tmp_path / "t.parquet")
    frame = read_table(tmp_path / "t.parquet", missing=["-9999999", "12345678"]).frame
    assert frame.isna().to_numpy().tolist() == [[False, False], [False, True], [True, False]]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_pipes_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("a,b\nu,v\nw,x\n",))
    writer.start()
    assert read_table(tmp_path / "pipe").frame.shape == (2, 2)
    writer.join()


def test_a_second_table_takes_the_states_of_the_first(write):
    first = prepare(read_table(write("a,b,y\n1,u,p\n2,v,q\n1,v,p\n")), target="y")
    second = read_table(write("b,y,extra,a\nu,q,0,2.0\nw,,0,3\n", "second.csv"))
    frame, target, _, notes = conform(second, first)
    assert frame["a"].cat.categories.tolist() == [1, 2] and frame["a"].iloc[0] == 2
    assert frame.isna().to_numpy().tolist() == [[False, False], [True, True]]
    assert target.isna().tolist() == [False, True] and len(notes) == 2
    with pytest.raises(ValueError, match="a class that"):
        conform(read_table(write("a,b,y\n1,u,r\n", "third.csv")), first)
    with pytest.raises(ValueError, match="lacks 'b'"):
        conform(read_table(write("a,y\n1,p\n", "fourth.csv")), first)
