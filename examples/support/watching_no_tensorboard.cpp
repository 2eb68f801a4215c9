#include "examples/support/watching.h"
#include "muster/core/base/error.h"

namespace example {

std::unique_ptr<Watcher> tensorBoardWatcher(const WatchOptions&,
                                            std::shared_ptr<const muster::EvaluationListener>) {
  throw muster::InvalidArgument(
      "--tensorboard: this program was built without TensorBoard, as protobuf was not found; install "
      "libprotobuf-dev and protobuf-compiler and build it again");
}

}  // namespace example
