"""Names that command lines and Python offer.  Nothing is imported here, so a command line is parsed quickly."""

#: The types that a model is computed in.
DTYPES = ("float32", "float16", "bfloat16", "int8")
#: What the words of a text are: tokens of the model's tokenizer; what whitespace separates; or characters, where a
#: script puts no spaces between words.
WORDS = ("tokens", "whitespace", "characters")
#: How raw text is normalised (text.offsets).
NORMALIZATIONS = ("none", "nfc", "moses")
#: Options of multilingual tasks that may be stated, and override those of the checkpoint; and the tag of other models.
LANGUAGE_OPTIONS = ("langs", "lang_dict", "lang_pairs", "fixed_dictionary", "target_tag")
#: The name of the bundled models, German-English and English-German.
DEMO = "demo"
#: ``reverse_path`` of a multilingual model that is to be read in one direction only.
NO_REVERSE = "none"
#: fairseq's tasks whose models read their languages as tags.
MULTILINGUAL, PRETRAINED = "translation_multi_simple_epoch", "translation_from_pretrained_bart"
