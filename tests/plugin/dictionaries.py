"""fairseq dictionaries of a few symbols."""

from fairseq.data import Dictionary

from fairseq_norm_plugin.text.tokens import Vocabulary, special_ids


def dictionary_of(*symbols):
    dictionary = Dictionary()
    for symbol in symbols:
        dictionary.add_symbol(symbol)
    return dictionary


def vocabulary_of(*symbols, mark="@@", tags=()):
    dictionary = dictionary_of(*symbols)
    return Vocabulary(dictionary, mark, special_ids(dictionary, tags))
