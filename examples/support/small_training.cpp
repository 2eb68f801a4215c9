#include "examples/support/small_training.h"

#include <algorithm>

#include "examples/support/command_line.h"
#include "examples/support/program.h"
#include "muster/core/io/output_path.h"

namespace example {

int runSmallTraining(int argc, const char* const* argv, std::string_view name, std::string_view introduction,
                     const std::function<int(const SmallTraining&)>& run) {
  return runProgram(name, [&] {
    SmallTraining o{.model = fmt::format("{}.safetensors", name)};
    std::ranges::replace(o.model, '_', '-');
    CommandLine line(introduction);
    line.group("Options");
    line.add("workers", o.workers, "N", "threads, each with a replica", between(1, 1024));
    line.add("epochs", o.epochs, "N", "passes over the data", between(1, 1'000'000));
    line.add("examples", o.examples, "N", "digits to train with, and as many to test with",
             between(1, 60'000));
    line.add("seed", o.seed, "N", "seed of the initial weights and of the order of the digits", atLeast(0));
    line.add("model", o.model, "FILE", "the trained parameters, in the safetensors format", fileName);
    if (!line.read(argc, argv)) return 0;
    muster::checkOutputFile(o.model);
    return run(o);
  });
}

}  // namespace example
