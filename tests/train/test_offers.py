"""What train/vary makes up: the noise of real offers, and offers of kinds and languages that no labelled titles have."""
import random
import unittest

import place  # noqa: F401  (finds the modules of train/)
from noise import KINDS, cut, gaps, make_noise, parts, shop_name

TITLE = "Calder & Co Men's Rain Jacket, Navy/Olive, Size L, Waterproof Shell Parka with Hood"
VALUES = {"Brand": "Calder & Co", "Colors": ["Navy", "Olive"], "Size": "L", "Kind": "Rain Jacket", "Fuel": None}


class NoiseTest(unittest.TestCase):
    def test_values_stay_in_noisy_titles(self):
        for kind in KINDS:
            changed = 0
            for seed in range(60):
                title, values = kind(TITLE, VALUES, random.Random(seed))
                changed += title != TITLE
                for value in values.values():
                    for text in parts(value):
                        self.assertIn(text, title, kind.__name__)
            self.assertGreater(changed, 20, kind.__name__)

    def test_what_is_cut_off_is_absent(self):
        absent = set()
        for seed in range(60):
            title, values = cut(TITLE, VALUES, random.Random(seed))
            self.assertTrue(TITLE.startswith(title.rstrip(" .…")))
            absent |= {name for name, value in values.items() if value is None}
        self.assertEqual(absent, {"Fuel", "Size"})

    def test_gaps_are_outside_of_values(self):
        at = gaps(TITLE, VALUES)
        self.assertNotIn(TITLE.index(" & Co"), at)
        self.assertIn(TITLE.index(" Parka"), at)

    def test_noise_is_the_same_for_a_seed(self):
        self.assertEqual(make_noise(TITLE, VALUES, random.Random(5)), make_noise(TITLE, VALUES, random.Random(5)))
        titles = {make_noise(TITLE, VALUES, random.Random(seed))[0] for seed in range(200)}
        self.assertGreater(len(titles), 150)
        self.assertGreater(len({shop_name(random.Random(seed)) for seed in range(200)}), 150)


if __name__ == "__main__":
    unittest.main()
