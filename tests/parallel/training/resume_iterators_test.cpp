// Each iterator of the library and iterators of a user, alone and around others: a training resumed in the
// middle of its second epoch, in a new model with a new iterator, ends with the bits of an uninterrupted one.

#include "muster/core/data/prefetch.h"
#include "tests/parallel/resumable.h"
#include "tests/parallel/training/every_iterator.h"
#include "tests/support/log_lines.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kEpochs = 3;

/// How a training reads its data.
struct Reading {
  std::int64_t buffer = 16;          // of the wrapper
  std::optional<int> prefetch = {};  // an iterator around the others
};

/// Trains up to the last epoch. @return the bytes of its checkpoint.
std::string train(const DataSource& source, const DataFiles& files, const std::filesystem::path& directory,
                  const std::filesystem::path& from = {}, const Reading& reading = {}) {
  MultiLayerNetwork model(source.network);
  model.init();
  if (!from.empty()) loadState(model, from);
  auto checkpoints = std::make_shared<CheckpointListener>(
      CheckpointOptions{.directory = directory, .everyIterations = from.empty() ? 1 : 0});
  DataChain chain;
  source.add(files, chain);
  if (reading.prefetch) chain.add<PrefetchingIterator>(*chain.parts.back(), *reading.prefetch);
  toyWrapper(model, 2)
      .prefetchBuffer(reading.buffer)
      .listeners({checkpoints, std::make_shared<AwaitFile>(checkpoints)})
      .build()
      .fit(*chain.parts.back(), kEpochs - model.epoch());
  return test::readFile(checkpoints->files().back());
}

}  // namespace

TEST_CASE("whatever iterator reads the data, a training resumed within an epoch ends with the same bits") {
  const LogLines log;  // has the warnings about files without published sums
  const DataFiles files;
  for (const auto& source : everyIterator()) {
    CAPTURE(source.name);
    const TemporaryDirectory directory;
    const std::string whole = train(source, files, directory / "whole");
    auto inSecond = checkpointsIn(directory / "whole", "checkpoint");
    std::erase_if(inSecond,
                  [](const auto& file) { return file.place.epoch != 1 || file.place.iteration == 0; });
    REQUIRE_FALSE(inSecond.empty());
    const auto middle = inSecond[inSecond.size() / 2].path;
    std::vector<Reading> readings = {{16, 2}, {0, {}}};
    if (test::whole()) readings.insert(readings.end(), {{0, 0}, {3, {}}});
    int number = 0;
    for (const Reading& reading : readings) {
      CAPTURE(reading.buffer);
      const auto resumed = train(source, files, directory / fmt::format("{}", number++), middle, reading);
      CHECK_MESSAGE((resumed == whole), "after a resume the last checkpoint has other bytes");
    }
  }
}
