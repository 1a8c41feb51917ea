"""BigDL: its module protocol around any nn.Module, its Recurrent and its GRU."""
