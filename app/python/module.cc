// The C interface that app/python/sheaf/_library.py calls by ctypes. Nothing is thrown through it.
#include <arrow/c/abi.h>

#include "app/python/calls.h"
#include "io/base/store.h"

#define SHEAF_CALLED extern "C" __attribute__((visibility("default")))

/// Of Python's own interface; the interpreter that loads this library has it.
extern "C" __attribute__((weak)) void* PyCapsule_GetPointer(void* capsule, const char* name);

using sheaf::Call;
using Kept = std::shared_ptr<sheaf::KeptModel>;

SHEAF_CALLED const char* sheaf_version() {
  return SHEAF_VERSION;
}

/// `engine`: of a call that opened one, or null. `table`: an Arrow C stream, which is taken over, or null.
SHEAF_CALLED Call* sheaf_start(const char* kind, const char* request, Kept* engine, ArrowArrayStream* table) {
  return new Call(kind, request, engine ? *engine : nullptr, table);
}

SHEAF_CALLED int sheaf_wait(Call* call, int milliseconds) {
  return call->wait(milliseconds);
}

/// Valid until the same thread asks again.
SHEAF_CALLED const char* sheaf_progress(Call* call) {
  thread_local std::string text;
  text = call->progress();
  return text.c_str();
}

SHEAF_CALLED void sheaf_stop(Call* call) {
  call->stop();
}

SHEAF_CALLED const char* sheaf_result(Call* call) {
  return call->result().c_str();
}

SHEAF_CALLED ArrowArrayStream* sheaf_rows(Call* call) {
  return call->rows();
}

/// Waits for the end of the work.
SHEAF_CALLED void sheaf_free(Call* call) {
  delete call;
}

SHEAF_CALLED void sheaf_close(Kept* engine) {
  delete engine;
}

/// Frees the stream in a capsule, with what nobody took of it.
SHEAF_CALLED void sheaf_release(void* capsule) {
  auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, "arrow_array_stream"));
  if (stream && stream->release) stream->release(stream);
  delete stream;
}

/// Before the process ends: Arrow's S3 must not outlive it.
SHEAF_CALLED void sheaf_end() {
  sheaf::close_stores();
}
