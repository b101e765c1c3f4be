# Writes SUITES, which tells ctest to run a test PROGRAM suite by suite, and where a suite has parameters, one of them at a
# time. An entry's name says how to run it: the program, and the filter. How each TEST ended is written to the folder
# RESULTS, in a file of the entry's name, for check.sh, which counts them.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests --gtest_filter=-${EXCLUDE} OUTPUT_VARIABLE list RESULT_VARIABLE status TIMEOUT 60)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} does not list its tests: ${status}")
endif()

# "Suite." and then "  a_test", or "  a_test/parameter  # GetParam() = ...", whose value is nothing to put into a list.
string(REGEX REPLACE " +#[^\n]*" "" list "${list}")
string(REPLACE "\n" ";" list "${list}")
set(filters)
foreach(line IN LISTS list)
    if(line MATCHES "^([^ ]+)\\.$")
        set(suite ${CMAKE_MATCH_1})
    elseif(line MATCHES "^  [^/]+/(.+)")
        list(APPEND filters "${suite}.*/${CMAKE_MATCH_1}")
    elseif(line MATCHES "^  ")
        list(APPEND filters "${suite}.*")
    endif()
endforeach()
list(REMOVE_DUPLICATES filters)

get_filename_component(program ${PROGRAM} NAME)
set(script)
foreach(filter IN LISTS filters)
    set(name "${program} ${filter}")
    string(REGEX REPLACE "[^A-Za-z0-9_]" "_" file ${name})
    string(APPEND script "add_test(\"${name}\" \"${PROGRAM}\" \"--gtest_filter=${filter}-${EXCLUDE}\" \"--gtest_output=xml:${RESULTS}/${file}.xml\")\n"
                         "set_tests_properties(\"${name}\" PROPERTIES TIMEOUT ${TIMEOUT} LABELS ${program})\n")
endforeach()
file(WRITE ${SUITES} "${script}")
