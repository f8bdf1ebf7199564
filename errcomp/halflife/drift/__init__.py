"""How far errors move apart with the lag between versions."""
