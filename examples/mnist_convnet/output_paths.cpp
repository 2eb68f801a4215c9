#include "examples/mnist_convnet/output_paths.h"

#include "examples/support/output_file.h"

namespace example {

void checkOutputPaths(const Options& options) {
  checkOutputFile(options.model);
  checkOutputFile(options.json);
  checkOutputDirectory(options.report);
  checkOutputDirectory(options.checkpointDirectory);
}

}  // namespace example
