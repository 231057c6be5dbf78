#!/usr/bin/perl
# Turns conformance vectors (JSON lines, the files given) into rows for COPY of
# the table that test/vectors.sh makes.  A pair becomes two rows.
use strict;
use warnings;
no warnings 'nonchar';
use JSON::PP;

my @columns = qw(name input input_hex expect canonical sha256 portable why
	or_error relation other);
my $json = JSON::PP->new->utf8;
binmode STDOUT, ':utf8';

sub field
{
	my ($value) = @_;
	return '\N' unless defined $value;
	return $value ? 't' : 'f' if JSON::PP::is_bool($value);
	$value =~ s/\\/\\\\/g;
	$value =~ s/\n/\\n/g;
	$value =~ s/\r/\\r/g;
	$value =~ s/\t/\\t/g;
	return $value;
}

sub row
{
	my ($vector) = @_;
	print join("\t", map { field($vector->{$_}) } @columns), "\n";
}

foreach my $file (@ARGV)
{
	open my $lines, '<:raw', $file or die "cannot read $file: $!\n";
	while (my $line = <$lines>)
	{
		my $vector = $json->decode($line);
		my $relation = $vector->{relation};
		row($vector) unless defined $relation;
		next unless defined $relation;

		foreach my $sides (['a', 'b'], ['b', 'a'])
		{
			my ($one, $other) = @$sides;
			row({
				name => "$vector->{name} ($one)",
				input => $vector->{$one},
				expect => $vector->{"${one}_expect"} // 'ok',
				sha256 => $vector->{"${one}_sha256"},
				why => $vector->{"${one}_why"},
				relation => $relation,
				other => $vector->{$other},
			});
		}
	}
	close $lines;
}
