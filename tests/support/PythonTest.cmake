# orrery_python_test(<name> COMMAND <script> <argument...> [PROCESSORS <n>] [SECONDS <n>] [SHARED]): a test of the
# whole program, by Debian's own Python, which has h5py. A script that skips all of its tests exits with 77.
# SECONDS is about how long it takes; the longest tests start first.
# SHARED says that some of its tests use the folder shared/ beside the repository and are skipped without it. If that
# folder is there, a second test <name>_alone runs those of its tests that use it as in a clone that stands alone.
set(ORRERY_SHARED ${PROJECT_SOURCE_DIR}/../shared CACHE PATH "real traces, which some tests use; they are skipped without")
find_program(ORRERY_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT ORRERY_PYTHON)
  set(ORRERY_PYTHON ${Python3_EXECUTABLE})
endif()

function(orrery_python_test name)
  cmake_parse_arguments(ARG "SHARED" "PROCESSORS;SECONDS" "COMMAND" ${ARGN})
  if(NOT TARGET orrery)
    return()
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  if(NOT ARG_SECONDS)
    set(ARG_SECONDS 10)
  endif()
  set(names ${name})
  if(ARG_SHARED AND EXISTS ${ORRERY_SHARED} AND NOT ORRERY_SANITIZE)
    list(APPEND names ${name}_alone)
  endif()
  foreach(test IN LISTS names)
    set(shared ${ORRERY_SHARED})
    set(only_shared)
    if(NOT test STREQUAL name)
      set(shared ${PROJECT_BINARY_DIR}/no-shared-folder)
      set(only_shared 1)
    endif()
    add_test(NAME ${test} COMMAND ${ORRERY_PYTHON} ${ARG_COMMAND})
    set_tests_properties(${test} PROPERTIES TIMEOUT ${ORRERY_TEST_TIMEOUT} PROCESSORS ${ARG_PROCESSORS} COST ${ARG_SECONDS} SKIP_RETURN_CODE 77)
    set_property(TEST ${test} PROPERTY ENVIRONMENT
      ORRERY_BINARY=$<TARGET_FILE:orrery> ORRERY_SHARED=${shared} ORRERY_SCRATCH=${PROJECT_BINARY_DIR}/scratch
      ORRERY_SANITIZED=${ORRERY_SANITIZE} ORRERY_ONLY_SHARED=${only_shared} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1)
  endforeach()
endfunction()
