"""Records with a part that was changed."""

import pyarrow as pa
import pyarrow.parquet as pq

PART = "part-00000-of-00001-00000.parquet"


def edited(directory, change, **options):
    """Change the table of a part; its manifest stays."""
    table = pq.read_table(directory / PART)
    changed = change(table).replace_schema_metadata(table.schema.metadata)
    pq.write_table(changed, directory / PART, **{"use_dictionary": False, **options})
    return directory


def column(name, value, type_=None):
    """Replace the value of a column in a table of one row."""

    def change(table):
        array = pa.array([value], type=type_ or table.schema.field(name).type)
        return table.set_column(table.schema.get_field_index(name), name, array)

    return change
