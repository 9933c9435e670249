"""`leadline doctor`: would a night run here tonight?"""
