#include "muster/parallel/exchange/merge_undo.h"

#include "muster/parallel/exchange/exchange.h"

namespace muster {

HostUndo::HostUndo(Exchange& exchange, const Options& options)
    : MergeUndo(options.everyMerge), exchange_(exchange) {
  if (options.everyMerge) backup_.make(exchange, /*statisticsAlone=*/!options.allState);
}

void HostUndo::keep(int participant) {
  const Topology& where = exchange_.topology();
  if (everyMerge()) backup_.keep(participant / where.nodes, where.participants / where.nodes);
}

void HostUndo::keepAll() {
  if (!backup_.made()) backup_.make(exchange_);
  backup_.keep(0, 1);
}

bool HostUndo::rollBack() {
  if (!backup_.made()) return false;
  exchange_.wait();  // what is still sent reads and writes these blocks
  backup_.restore();
  return true;
}

}  // namespace muster
