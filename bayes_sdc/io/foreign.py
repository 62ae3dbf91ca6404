"""File formats that are not read, known by their first bytes, each with what converts it."""

import re

from bayes_sdc.errors import InputError
from bayes_sdc.io.text import unpack

GZIP = b"\x1f\x8b"
R = "Rscript -e 'write.csv({call}, \"{stem}.csv\", row.names = FALSE)'"
PANDAS = "python -c 'import pandas; pandas.{call}.to_csv(\"{stem}.csv\", index=False)'"
OFFICE = "libreoffice --headless --convert-to csv '{name}'"
AVRO = "duckdb -c \"LOAD avro; COPY (FROM read_avro('{name}')) TO '{stem}.csv'\""
BEGINNING = 200  # bytes

# how it begins, what it is, the command, and the call in it
FOREIGN = (
    (rb"\x1f\x8b", "a file that gzip packed twice", "gunzip '{name}'", ""),
    (rb"BZh[1-9]", "a file packed by bzip2", "bunzip2 '{name}'", ""),
    (rb"\xfd7zXZ\x00", "a file packed by xz", "unxz '{name}'", ""),
    (rb"\x28\xb5\x2f\xfd", "a file packed by zstd", "unzstd '{name}'", ""),
    (rb"7z\xbc\xaf\x27\x1c", "an archive of 7-Zip", "7z x '{name}'", ""),
    (rb"PK\x03\x04.{0,40}application/vnd\.oasis", "an OpenDocument table", OFFICE, ""),
    (rb"PK\x03\x04", "a zip archive, but no Excel workbook", "unzip '{name}'", ""),
    (rb"\xd0\xcf\x11\xe0", "an old Excel workbook", OFFICE, ""),
    (rb"RD[XA][23]\n", "a workspace of R", R, 'get(load("{name}"))'),
    (rb"[XAB]\n\x00\x00\x00[\x02\x03]", "an object of R", R, 'readRDS("{name}")'),
    (
        rb"<stata_dta>|[\x6c-\x73][\x01\x02]\x01\x00",
        "a Stata file",
        PANDAS,
        'read_stata("{name}")',
    ),
    (rb"\$FL[23]@\(#\)", "an SPSS file", PANDAS, 'read_spss("{name}")'),
    (rb"\x00{12}\xc2\xea\x81\x60", "a SAS file", PANDAS, 'read_sas("{name}")'),
    (rb"HEADER RECORD\*", "a transport file of SAS", PANDAS, 'read_sas("{name}")'),
    (rb"ARROW1|FEA1", "a Feather file", PANDAS, 'read_feather("{name}")'),
    (rb"\x89HDF", "an HDF5 file", PANDAS, 'read_hdf("{name}")'),
    (rb"\x80[\x02-\x05][\x95}c\]]", "a pickle of Python", PANDAS, 'read_pickle("{name}")'),
    (rb"Obj\x01", "an Avro file", AVRO, ""),
    (rb"%PDF-", "a PDF document", "ask for the table behind it", ""),
    (rb"\s*\{.*\}\s*\n\s*\{", "JSON by line", PANDAS, 'read_json("{name}", lines=True)'),
    (rb"\s*[\[{]\s*[{\"\[]", "a JSON file", PANDAS, 'read_json("{name}")'),
    (rb"\s*<(html|!doctype|table|head|body)\b", "a page of HTML", OFFICE, ""),
    (rb"\s*<(\?xml|[a-z:]+ xmlns)", "an XML file", PANDAS, 'read_xml("{name}")'),
)


def unpack_table(data: bytes, name: str) -> tuple[bytes, bool]:
    """Return what :func:`bayes_sdc.io.text.unpack` does, for a table in a form that is read.

    Raises
    ------
    InputError
        If the form is another one, or the packing damaged.
    """
    if not data.startswith(GZIP):
        refuse_foreign(data, name)
    data, gzipped = unpack(data, name)
    refuse_foreign(data, name)
    return data, gzipped


def refuse_foreign(data: bytes, name: str) -> None:
    r"""Refuse a file whose form is not read, and say what converts it.

    Parameters
    ----------
    data : bytes
        Content of the file, unpacked.
    name : str
        Of the file.

    Raises
    ------
    InputError
        With the command.

    Examples
    --------
    >>> refuse_foreign(b"o,d,n", "flows.csv")
    >>> refuse_foreign(b"RDX3\n", "flows.RData")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    bayes_sdc.errors.InputError: flows.RData: a workspace of R, which is not read. Remedy: ...
    """
    begin = data[:BEGINNING]
    for begins, what, command, call in FOREIGN:
        if re.match(begins, begin, re.DOTALL | re.IGNORECASE):
            stem = name.split(".")[0] or "table"
            how = command.replace("{call}", call).replace("{name}", name).replace("{stem}", stem)
            raise InputError(f"{name}: {what}, which is not read. Remedy: convert it: {how}")
