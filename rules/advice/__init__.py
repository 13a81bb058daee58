"""From footprints to advice: verdict, options, levers, tiers, explanation."""
