"""The maps of Kobayashi et al. (2020, 2021, 2024) as pure tensor functions, independent of fairseq."""
