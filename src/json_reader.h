/*
 * json_reader.h
 *	  Reads a JSON text strictly and gives its canonical form.
 */
#ifndef JSON_READER_H
#define JSON_READER_H

#include "json_writer.h"

extern struct varlena *json_reader_canonicalize(const char *text,
												size_t length,
												JsonFault *fault);

#endif							/* JSON_READER_H */
