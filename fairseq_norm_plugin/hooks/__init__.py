"""The hooks through which the plugin adds maps, records and monitoring to fairseq's tasks; and a criterion."""
