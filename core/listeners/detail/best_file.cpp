#include "muster/core/listeners/detail/best_file.h"

#include <string>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/output_path.h"
#include "muster/core/listeners/detail/best_value_note.h"

namespace muster::detail {

BestFile::BestFile(std::filesystem::path path, ModelNotes notes, Monitored monitored)
    : path_(std::move(path)), notes_(std::move(notes)), monitored_(std::move(monitored)) {
  require(!notes_.contains(std::string(kBestValueNote)), "early stopping: the note {} is reserved",
          kBestValueNote);
}

void BestFile::begin(Model& model, bool resumed) {
  require(dynamic_cast<Network*>(&model) != nullptr,
          "early stopping: bestFile needs a model that is a Network");
  checkOutputFile(path_);
  value_ = resumed ? readBestValue(path_, monitored_) : std::nullopt;
}

void BestFile::write(ModelWriter& writer, Model& model, const TrainingState& training, double value) {
  notes_[std::string(kBestValueNote)] = bestValueNote(monitored_, value);
  writer.write(dynamic_cast<Network&>(model), training, notes_, path_);
  value_ = value;
}

}  // namespace muster::detail
