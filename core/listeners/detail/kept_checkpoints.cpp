#include "muster/core/listeners/detail/kept_checkpoints.h"

#include <system_error>
#include <utility>

#include "muster/core/base/log.h"
#include "muster/core/io/input_file.h"

namespace muster::detail {

KeptCheckpoints::KeptCheckpoints(std::filesystem::path directory, std::string baseName, std::int64_t last,
                                 std::int64_t everyEpochs)
    : directory_(std::move(directory)),
      baseName_(std::move(baseName)),
      last_(last),
      everyEpochs_(everyEpochs) {}

std::filesystem::path KeptCheckpoints::path(const CheckpointPlace& place) const {
  return checkpointPath(directory_, baseName_, place);
}

bool KeptCheckpoints::isForGood(const CheckpointPlace& place) const {
  return everyEpochs_ > 0 && place.iteration == 0 && place.epoch % everyEpochs_ == 0;
}

void KeptCheckpoints::takeOver() {
  if (!files_.empty()) return;
  for (auto& file : checkpointsIn(directory_, baseName_))
    if (!isForGood(file.place) && fileTypeOf(file.path) == std::filesystem::file_type::regular)
      files_.push_back(std::move(file.path));
}

void KeptCheckpoints::add(const CheckpointPlace& place) {
  const auto file = path(place);
  own_.insert(file);
  std::erase(files_, file);  // training an epoch again replaces its file
  if (!isForGood(place)) files_.push_back(file);
  removeOld();
}

void KeptCheckpoints::removeOld() {
  while (last_ > 0 && static_cast<std::int64_t>(files_.size()) > last_) {
    std::error_code error;
    std::filesystem::remove(files_.front(), error);
    // A file that cannot be deleted does not end a training.
    if (error)
      logWarning("{}: an old checkpoint cannot be removed: {}", files_.front().string(), error.message());
    else
      own_.erase(files_.front());
    files_.pop_front();
  }
}

}  // namespace muster::detail
