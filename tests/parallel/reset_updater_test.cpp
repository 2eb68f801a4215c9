// An updater that a rule resets starts anew: its count of updates, by which Adam corrects its moments, too.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "muster/parallel/strategies.h"
#include "toy_data.h"
#include "toy_model.h"
#include "toy_wrapper.h"
