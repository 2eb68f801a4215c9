#pragma once

#include <filesystem>
#include <optional>

#include "muster/core/listeners/model_writer.h"
#include "muster/core/listeners/monitored.h"

namespace muster::detail {

/// The file of the best model that early stopping has found. It notes the monitored value of its model.
class BestFile {
 public:
  /// @param path  empty: there is no such file. @param notes  of the user.
  BestFile(std::filesystem::path path, ModelNotes notes, Monitored monitored);

  bool wanted() const { return !path_.empty(); }
  /// A training begins. @param resumed  the value of a file that is there counts.
  /// @throws InvalidArgument if the model is not a Network; FileError for a file that cannot be written or,
  ///         if resumed, read.
  void begin(Model& model, bool resumed);
  /// Whether the file is missing or worse than a model with this value.
  bool lacks(double value) const { return !value_ || monitored_.gain(value, *value_) > 0; }
  /// Begins to write the model, which has this value. @throws as ModelWriter::write.
  void write(ModelWriter& writer, Model& model, const TrainingState& training, double value);

 private:
  std::filesystem::path path_;
  ModelNotes notes_;
  Monitored monitored_;
  std::optional<double> value_;  // of the file, as far as known
};

}  // namespace muster::detail
