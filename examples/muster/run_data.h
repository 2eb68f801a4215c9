#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "examples/muster/run_file.h"
#include "examples/support/paths.h"
#include "muster/core/data/data_set_iterator.h"
#include "muster/core/device/device.h"

namespace program {

/// The data of a run file.
struct LoadedData {
  std::string title;                 ///< for people
  std::string origin;                ///< where they are from
  std::string placed;                ///< where images are, if there is something to say
  std::vector<std::string> classes;  ///< [class] names; may be empty
  std::unique_ptr<muster::DataSetIterator> train;
  std::unique_ptr<muster::DataSetIterator> validation, test;  ///< null: none
  std::unique_ptr<muster::DataSetIterator> weighted;          ///< `train` with class weights; null: none

  /// What to train on.
  muster::DataSetIterator& training() { return weighted ? *weighted : *train; }
};

/// Reads, fetches or draws it. @param devices  worker i computes on device i mod D of them.
/// @throws InvalidArgument naming the field that does not fit the data; FileError, DownloadError.
LoadedData loadData(const RunData& data, muster::PlacementWish placement,
                    std::span<const muster::Device> devices, int workers);

/// Adds the files that it is read from. Of a folder of images none.
void addTo(example::Paths& paths, const RunData& data);

}  // namespace program
