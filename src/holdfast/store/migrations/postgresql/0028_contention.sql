-- A statement that finds that another transaction came first raises this itself, so that the COMMIT can be
-- sent along with it: the COMMIT is not carried out, and the transaction is run again.
CREATE FUNCTION holdfast_contend(reason text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'HF001', MESSAGE = reason;
END
$$;
