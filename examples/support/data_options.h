#pragma once

#include <boost/program_options.hpp>

#include "examples/support/data_sets.h"

namespace example {

/// The options `--data`, `--data-dir`, `--examples` and `--test-examples`, whose values go to `choice`; it
/// says before which data sets there are.
boost::program_options::options_description describeData(DataChoice& choice);

/// @throws muster::InvalidArgument naming the option that is out of range or has no effect.
void checkData(const DataChoice& choice);

}  // namespace example
