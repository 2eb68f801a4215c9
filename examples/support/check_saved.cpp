#include "examples/support/check_saved.h"

#include "muster/core/base/error.h"
#include "muster/core/eval/same_outputs.h"

namespace example {

std::string checkSaved(muster::Network& network, const std::filesystem::path& path, const DataSets& data,
                       std::int64_t batch) {
  muster::ImageSetIterator first(data.test->set(), batch, std::nullopt, batch);
  if (!muster::sameOutputs(network, *muster::Network::load(path), first))
    throw muster::FileError(
        path,
        "was saved, but what was loaded from it predicts something else: another process has "
        "replaced the file, or the disk changed it");
  return "loaded again, it gives the same outputs, bit for bit";
}

}  // namespace example
